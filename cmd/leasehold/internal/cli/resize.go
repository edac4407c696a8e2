package cli

import (
	"context"
	"fmt"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/voice"
	"github.com/leasehold-dev/leasehold/internal/statejson"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/spf13/cobra"
)

func resizeCommand(p *program) *cobra.Command {
	permits := 0
	c := &cobra.Command{
		Use:   "resize NAME --permits N",
		Short: "Change the number of permits of a semaphore that is in use",
		Long: `Gives the semaphore NAME another number of permits while it is held.

Leases stay as they are. If they no longer fit, nobody gets a permit until they do.
From now on, requests for NAME have to name the new number. A request that names the
earlier number fails with an error, and so does one that is waiting now. So resize the
semaphore first, and then change the number in your programs.

A semaphore that nobody uses has no number of permits: the next request for it sets
one. There is nothing to change then, and the exit code is 0. A mutex that is
held gets no permits, since its holder relies on being the only one; neither does a
semaphore of one permit, which is a mutex, unless several still hold it from before.

Over several Redis servers, and in ZooKeeper, a semaphore keeps its number: use one
with another name.

Exit codes: 0 if NAME has N permits now, or nobody uses it; 125 if leasehold itself
failed, for example because NAME is a lock of another kind, or because the store keeps
no semaphores or cannot resize them. The number may have changed then, and trying again
is safe.`,
		Example: `  leasehold resize downloads --permits 8
  leasehold run downloads --permits 8 -- ./download.sh`,
		Args:              oneName,
		ValidArgsFunction: p.completeOneName,
		RunE: func(c *cobra.Command, args []string) error {
			name := args[0]
			switch err := store.CheckName(name); {
			case err != nil:
				return err
			case !c.Flags().Changed("permits"):
				return usage(c, "give --permits: how many permits the semaphore is to have")
			case permits < 1:
				return usage(c, "--permits %d: a semaphore needs at least one permit", permits)
			}
			return p.ask(c, func(ctx context.Context, st *store.Store) error {
				return resize(p, ctx, st, name, permits)
			})
		},
	}
	c.Flags().IntVar(&permits, "permits", 0, "give the semaphore `N` permits")
	return c
}

// resize changes the number of permits from the one that is in use, and says so. The store
// refuses if that has changed meanwhile.
func resize(p *program, ctx context.Context, st *store.Store, name string, permits int) error {
	s, err := st.Inspect(ctx, name)
	if err != nil {
		return err
	}
	from := int64(permits) // if nobody uses it, the store only says whether it keeps such locks
	if s.Held {
		from = s.Kind.Normal().Limit
	}
	changed := from != int64(permits)
	if s.Kind.Shared || changed && statejson.IsOne(s.Kind, s.Holdings()) {
		return fmt.Errorf("lock %q is in use as a %v by %s: only a semaphore has permits", name, s.Kind, s.Holder)
	}
	if err := client(p, st).Operator().Resize(ctx, name, int(from), permits); err != nil {
		return err
	}
	switch {
	case !s.Held:
		p.voice.Note("nobody uses lock %q: the next request for it sets the number of permits", name)
	case !changed:
		p.voice.Note("semaphore %q has %s already", name, voice.Count(permits, "permit"))
	case permits == 1:
		p.voice.Note("semaphore %q has 1 permit now, and had %d: it is a mutex, so it gets no more permits once a single holder is left", name, from)
	default:
		p.voice.Note("semaphore %q has %s now, and had %d", name, voice.Count(permits, "permit"), from)
	}
	return nil
}
