package doctor

import (
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/kubernetesstore"
)

// Kubernetes returns the findings about locks with a TTL in a namespace.
func Kubernetes(e kubernetesstore.Examination, ttl time.Duration) []Finding {
	r := &report{}
	if e.Unverified {
		r.add(Warning, KubernetesUnverified, e.Node, "The client does not check whom it talks to: somebody in between can read its credentials, and answer in place of the API server.")
	}
	if len(e.Missing) > 0 {
		r.add(Error, KubernetesRights, e.Node, "The account may not %s Lease objects.", strings.Join(e.Missing, ", "))
	}
	if e.Unusable != nil {
		if len(e.Missing) == 0 {
			r.add(Error, KubernetesUnusable, e.Node, "No lock can be acquired there: %v.", store.Excerpt(e.Unusable.Error()))
		}
		return r.sorted()
	}
	if e.Took > ttl/10 {
		r.add(Warning, KubernetesSlow, e.Node, "A lock and its release took %v. With a TTL of %v, a few such answers in a row end a lease.", store.Round(e.Took), ttl)
	}
	return r.sorted()
}
