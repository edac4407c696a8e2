package cli

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/lockview"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/spf13/cobra"
)

func watchCommand(p *program) *cobra.Command {
	asJSON, every, prefix := false, time.Second, ""
	c := &cobra.Command{
		Use:   "watch NAME|--prefix PREFIX",
		Short: "Print who acquires and gives up a lock, as it happens",
		Long: `Prints a line for each holder that the lock NAME has now, and then one for each that it
gets and loses, until a signal ends it. With --prefix it does so for all locks whose names
begin with PREFIX, and each line names the lock. For an election (see "leasehold elect") these
are the leaders. watch asks the store at intervals of --every, so it does not see a lease
that began and ended in between.

While the store cannot be asked, watch says so once on standard error, and goes on. While
some nodes do not answer, and it depends on them whether a lease is held, watch waits for
them, or for the end of the lease, before it says what has changed.

With --json each line is one object with
  time   when the change was seen, RFC 3339
  event  "held" for a holder that the lock has at first, "acquired" for a new one,
         "over" for one whose lease has ended, and "free" if the lock then has none,
         or had none at first; "undecided" at first for one that may be a holder, if that
         depends on nodes that do not answer
and, with --prefix, name, and except for "free" owner, host, pid, purpose, since and token as in
"leasehold show --json", and slot unless the lock is a mutex. Fields may be added; none
is renamed or removed.`,
		Example: `  leasehold watch scheduler
  leasehold watch --prefix jobs/
  leasehold watch scheduler --json | jq -r 'select(.event == "acquired").host'`,
		Args: func(c *cobra.Command, args []string) error {
			if !c.Flags().Changed("prefix") {
				return oneName(c, args)
			}
			if len(args) > 0 {
				return usage(c, "give the name of a lock or --prefix, not both")
			}
			return nil
		},
		ValidArgsFunction: p.completeOneName,
		RunE: func(c *cobra.Command, args []string) error {
			look := func(ctx context.Context, st *store.Store) ([]store.State, error) { return st.List(ctx, prefix) }
			if len(args) > 0 {
				if err := store.CheckName(args[0]); err != nil {
					return err
				}
				look = func(ctx context.Context, st *store.Store) ([]store.State, error) {
					s, err := st.Inspect(ctx, args[0])
					return []store.State{s}, err
				}
			}
			if every < leastEvery {
				return usage(c, "--every %v is too often: the minimum is %v", every, leastEvery)
			}
			return p.ask(c, func(ctx context.Context, st *store.Store) error {
				return watch(p, ctx, st, look, len(args) == 0, every, asJSON)
			})
		},
	}
	c.Flags().DurationVar(&every, "every", every, "how often to ask the store: a `TIME` such as 200ms")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, one object a line")
	c.Flags().StringVar(&prefix, "prefix", "", "watch all locks whose names begin with `PREFIX`, which may be empty")
	return c
}

// leastEvery is the least time between two questions of watch to the store.
const leastEvery = 10 * time.Millisecond

// watch runs "leasehold watch" until the store cannot be used any more. look returns the locks to
// watch. many says that each line names its lock.
func watch(p *program, ctx context.Context, st *store.Store, look func(context.Context, *store.Store) ([]store.State, error), many bool, every time.Duration, asJSON bool) error {
	known := map[string]*lockview.Watched{}
	first, trouble := true, false
	for ; ; time.Sleep(every) {
		states, err := look(ctx, st)
		switch {
		case errors.Is(err, store.ErrInvalid), errors.Is(err, store.ErrKindMismatch), errors.Is(err, store.ErrUnsupported):
			return err
		case err != nil && first:
			return err
		case err != nil:
			if !trouble {
				p.voice.Note("%s", p.voice.Text(err))
			}
			trouble = true
			continue
		}
		there := map[string]bool{}
		for _, s := range states {
			there[s.Name] = true
		}
		for _, name := range slices.Sorted(maps.Keys(known)) {
			if !there[name] { // it is listed no more
				states = append(states, store.State{Name: name})
			}
		}
		for _, s := range states {
			w, isKnown := known[s.Name]
			if !isKnown {
				w = &lockview.Watched{}
				known[s.Name] = w
			}
			for _, change := range w.Changes(s, first) {
				if many {
					change.Name = s.Name
				}
				if err := change.Write(p.stdout, time.Now(), asJSON); err != nil {
					return err
				}
			}
			if many && s.Free() {
				delete(known, s.Name)
			}
		}
		first, trouble = false, false
	}
}
