package cli

import (
	"fmt"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/voice"
	"github.com/leasehold-dev/leasehold/store/kubernetesstore"
	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
	"github.com/spf13/cobra"
)

// kubernetesACL prints manifests that give a service account the least rights in the namespace of the
// store at url.
func kubernetesACL(p *program, c *cobra.Command, url, account string, uses redisadmin.Use) error {
	if c.Flags().Changed("prefix") {
		return usage(c, "--prefix: Kubernetes cannot limit a right to names that begin with something: use a namespace of its own")
	}
	use := kubernetesstore.ToList
	switch {
	case uses&redisadmin.ToDeclare != 0:
		return usage(c, "--for bootstrap: servers of Kubernetes are not declared")
	case uses&(redisadmin.ToLock|redisadmin.ToExamine) != 0: // the doctor tries a lock
		use = kubernetesstore.ToLock
	case uses&redisadmin.ToShow != 0:
		use = kubernetesstore.ToShow
	}
	text, err := kubernetesstore.Rights(url, account, use)
	if err != nil {
		return err
	}
	p.voice.Note("pipe it to \"kubectl apply -f -\"; the pod has serviceAccountName: %s", voice.Shown(account))
	_, err = fmt.Fprint(p.stdout, text)
	return err
}
