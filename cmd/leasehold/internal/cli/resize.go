package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/internal/statejson"
	"github.com/leasehold-dev/leasehold/store"
)

func resizeCommand(p *program) *cobra.Command {
	permits, asJSON := 0, false
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

With --json it prints one object with name, permits (the new number), was (the number
before; absent if nobody used the semaphore) and changed (whether this call changed
it). Fields may be added; none is renamed or removed.

Over several Redis servers a semaphore keeps its number: use one with another name.

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
				r, err := resize(p, ctx, st, name, permits)
				switch {
				case err != nil:
					return err
				case asJSON:
					return writeJSON(p.stdout, r)
				}
				r.tell(p)
				return nil
			})
		},
	}
	c.Flags().IntVar(&permits, "permits", 0, "give the semaphore `N` permits")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// resizedJSON is what "leasehold resize" did, as its help describes it.
type resizedJSON struct {
	statejson.LockName
	Permits int   `json:"permits"`
	Was     int64 `json:"was,omitempty"`
	Changed bool  `json:"changed"`
}

// resize changes the number of permits from the one that is in use. The store refuses if
// that has changed meanwhile.
func resize(p *program, ctx context.Context, st *store.Store, name string, permits int) (resizedJSON, error) {
	r := resizedJSON{LockName: statejson.NameOf(name), Permits: permits}
	s, err := st.Inspect(ctx, name)
	if err != nil {
		return r, err
	}
	from := int64(permits) // if nobody uses it, the store only says whether it keeps such locks
	held := s.Holdings()
	if s.Held {
		from = s.Kind.Normal().Limit
		r.Was, r.Changed = from, from != int64(permits)
	}
	if s.Kind.Shared || r.Changed && statejson.IsOne(s.Kind, held) {
		return r, fmt.Errorf("lock %q is in use as a %v by %s: only a semaphore has permits", name, s.Kind, s.Holder)
	}
	return r, client(p, st).Operator().Resize(ctx, name, int(from), permits)
}

// tell says what was done.
func (r resizedJSON) tell(p *program) {
	switch {
	case r.Was == 0:
		p.voice.note("nobody uses lock %q: the next request for it sets the number of permits", r.Name)
	case !r.Changed:
		p.voice.note("semaphore %q has %s already", r.Name, count(r.Permits, "permit"))
	case r.Permits == 1:
		p.voice.note("semaphore %q has 1 permit now, and had %d: it is a mutex, so it gets no more permits once a single holder is left", r.Name, r.Was)
	default:
		p.voice.note("semaphore %q has %s now, and had %d", r.Name, count(r.Permits, "permit"), r.Was)
	}
}
