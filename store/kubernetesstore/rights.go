package kubernetesstore

import (
	"fmt"
	"strings"

	"github.com/leasehold-dev/leasehold/store"
)

// Use is what somebody does with locks.
type Use string

// The uses.
const (
	ToLock Use = "lock" // all
	ToShow Use = "show" // look at a lock
	ToList Use = "list" // look at all locks
)

// verbs are what a use needs on Lease objects. Objects are never deleted.
var verbs = map[Use][]string{
	ToLock: {"get", "list", "watch", "create", "update"},
	ToShow: {"get", "list"},
	ToList: {"list"},
}

// Rights returns manifests of the Role that a use needs, and of its binding to a service account of
// the namespace that a URL names. Both have the account's name. The error matches
// store.ErrInvalid.
func Rights(url, account string, use Use) (string, error) {
	o, err := engine.Options(url, nil)
	if err != nil {
		return "", err
	}
	if len(account) > maxName || !nameForm.MatchString(account) {
		return "", fmt.Errorf("%w: %q is no name of a service account", store.ErrInvalid, store.Excerpt(account))
	}
	return fmt.Sprintf(`apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: %[2]s
  namespace: %[1]s
rules:
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    verbs: [%[3]s]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: %[2]s
  namespace: %[1]s
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: %[2]s
subjects:
  - kind: ServiceAccount
    name: %[2]s
    namespace: %[1]s
`, o.namespace, account, strings.Join(verbs[use], ", ")), nil
}
