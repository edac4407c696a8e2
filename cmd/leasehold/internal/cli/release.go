package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/runner"
	"github.com/leasehold-dev/leasehold/store"
)

func releaseCommand(p *program) *cobra.Command {
	owner, now := "", false
	c := &cobra.Command{
		Use:   "release NAME --owner OWNER",
		Short: "Release a lock that \"leasehold acquire\" acquired",
		Long: `Releases the lock NAME if OWNER holds it, and changes no other owner's lease. OWNER is
what "leasehold acquire" printed, or "leasehold show" shows.

A lease that is renewed, as that of "leasehold run", is refused: its holder would learn
of the release at its next renewal only, and two commands could work at once until then.
"leasehold break" tells the holder first. With --now the lock is freed nevertheless: use
it if you know that the holder is gone.

Exit codes: 0 if this call ended the lease; 123 if OWNER no longer had one, because
--ttl was over or because it was released before: what was done since then was not
protected by the lock; 124 if the holder renews the lease; 125 if leasehold itself failed.
The lease may remain then, and trying again is safe.`,
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
			return p.ask(c, func(ctx context.Context, st *store.Store) error {
				err := releasable(ctx, st, name, owner)
				if err == nil || now {
					err = client(p, st).Operator().ReleaseOwner(ctx, name, owner)
				}
				if errors.Is(err, leasehold.ErrLost) {
					err = &exitError{code: runner.CodeLost, err: err}
				}
				return err
			})
		},
	}
	c.Flags().StringVar(&owner, "owner", "", "the `OWNER` that holds the lock")
	c.Flags().BoolVar(&now, "now", false, "release a lease that is renewed, too")
	completeHolders(p, c, "owner", func(h store.Holding) string { return h.Holder.Owner })
	return c
}

// releasable returns an error if the owner renews its lease.
func releasable(ctx context.Context, st *store.Store, name, owner string) error {
	state, err := st.Inspect(ctx, name)
	if err != nil {
		return err
	}
	for _, h := range state.Leases() {
		if h.Holder.Owner == owner && !h.Holder.Unrenewed {
			return &exitError{code: codeBusy, err: fmt.Errorf("lock %q is held by %s, who renews the lease and would be told too late: use \"leasehold break\" with --token %v, which tells the holder first, or --now", name, h.Holder, h.Token)}
		}
	}
	return nil
}
