package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/runner"
	"github.com/leasehold-dev/leasehold/store"
)

func releaseCommand(p *program) *cobra.Command {
	owner := ""
	c := &cobra.Command{
		Use:   "release NAME --owner OWNER",
		Short: "Release a lock that \"leasehold acquire\" acquired",
		Long: `Releases the lock NAME if OWNER holds it, and changes no other owner's lease. OWNER is
what "leasehold acquire" printed, or "leasehold show" shows. To take a lock from a
holder that still works, use "leasehold break".

Exit codes: 0 if this call ended the lease; 123 if OWNER no longer had one, because
--ttl was over or because it was released before: what was done since then was not
protected by the lock; 125 if leasehold itself failed. The lease may remain then, and
trying again is safe.`,
		Example: `  lease=$(leasehold acquire deploy --ttl 10m) || exit
  ./deploy.sh
  leasehold release deploy --owner "${lease% *}"`,
		Args:              oneName,
		ValidArgsFunction: p.completeOneName,
		RunE: func(c *cobra.Command, args []string) error {
			name := args[0]
			if err := store.CheckName(name); err != nil {
				return err
			}
			if !c.Flags().Changed("owner") {
				return usage(c, "give --owner, as \"leasehold acquire\" printed it")
			}
			return p.ask(c, func(ctx context.Context, st store.Store) error {
				err := client(p, st).ReleaseOwner(ctx, name, owner)
				if errors.Is(err, leasehold.ErrLost) {
					err = &exitError{code: runner.CodeLost, err: err}
				}
				return err
			})
		},
	}
	c.Flags().StringVar(&owner, "owner", "", "the `OWNER` that holds the lock")
	completeHolders(p, c, "owner", func(h store.Holding) string { return h.Holder.Owner })
	return c
}
