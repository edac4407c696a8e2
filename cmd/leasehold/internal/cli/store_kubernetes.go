package cli

import (
	"context"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/doctor"
	"github.com/leasehold-dev/leasehold/store/kubernetesstore"
)

var kubernetesScheme = scheme{
	names: []string{"kubernetes"},
	usage: "kubernetes://NAMESPACE?context=CONTEXT",
	help: `Lease objects in a namespace of Kubernetes, which exclude leader elections of client-go
with the same name. Credentials are those of the pod's service account, or of a kubeconfig:
kubeconfig=FILE, or the one that KUBECONFIG names. "leasehold acl" prints the Role. With
skew=1m, a job that tries once can get the lock of a dead holder.`,
	single: true,
}

func examineKubernetes(ctx context.Context, url string, o doctorFlags) ([]doctor.Finding, error) {
	namespace, options, err := kubernetesstore.ParseURL(url)
	if err != nil {
		return nil, err
	}
	e, err := kubernetesstore.Examine(ctx, namespace, options)
	if err != nil {
		return nil, err
	}
	return doctor.Kubernetes(e, o.ttl), nil
}
