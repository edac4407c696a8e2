package cli

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/lockview"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/spf13/cobra"
)

func showCommand(p *program) *cobra.Command {
	asJSON, exitCode := false, false
	c := &cobra.Command{
		Use:   "show NAME",
		Short: "Show the holder of a lock and its waiters",
		Long: `Shows who holds the lock NAME, for what purpose and since when, when the lease ends
unless it is renewed, and the fencing token; then who waits for it, in the order in
which they will get it. For a store of several nodes it also shows what each node
answers. The goroutines of one client that wait with the same purpose and TTL share
one place in the queue.

If nodes do not answer, it can depend on them whether a lease is held. The lease is then
shown as one that may be held, with the longest that this can last unless it is renewed,
and "undecided" names these nodes.

If too few of several servers answer, what the others know is shown, and the exit code is
125.

A free lock is not an error: the exit code is 0. With --exit-code it is 124 if the lock
is held, or may be held. By the time you act on it, that may have changed: to do
something only if nobody else does, use "leasehold run --try".

With --json it prints one object: "leasehold help json" describes it.`,
		Example: `  leasehold show deploy
  leasehold show deploy --exit-code --quiet || echo "a deployment is running"`,
		Args:              oneName,
		ValidArgsFunction: p.completeOneName,
		RunE: func(c *cobra.Command, args []string) error {
			if err := store.CheckName(args[0]); err != nil {
				return err
			}
			held := false
			err := p.look(c, func(ctx context.Context, st *store.Store) error {
				s, err := st.Inspect(ctx, args[0])
				few := errors.Is(err, store.ErrQuorum) && len(s.Nodes) > 0
				if err != nil && !few {
					return err
				}
				held = !s.Free()
				switch {
				case asJSON:
					return errors.Join(lockview.WriteJSON(p.stdout, lockview.One{State: lockview.JSON(s), Incomplete: few}), err)
				case p.voice.Quiet:
					return err
				}
				return errors.Join(lockview.WriteState(p.stdout, s, few, time.Now()), err)
			})
			if err == nil && exitCode && held {
				err = &exitError{code: codeBusy}
			}
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&exitCode, "exit-code", false, "exit with 124 if the lock is held, or may be")
	return c
}
