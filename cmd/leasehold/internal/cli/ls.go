package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/internal/statejson"
	"github.com/leasehold-dev/leasehold/store"
)

func (p *program) lsCommand() *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:   "ls [PREFIX]",
		Short: "List the locks that are held",
		Long: `Lists the locks that are held and whose names begin with PREFIX, sorted by name:
the name, what kind of lock it is, the holder, how long it has held the lock, when the
lease ends unless it is renewed, and the fencing token. Of a semaphore and of a
read-write lock, each holder has a line of its own. Names with unusual characters are
quoted. If some of several servers do not answer, it can depend on them whether a lease
is held: its holder is then marked as one that may hold the lock.

On Redis, locks that other programs made by themselves (SET NX) are not listed:
"leasehold show NAME" shows them. If a server has too many keys, or never says that
there are no more, the list is cut: the locks found so far are printed, the reason
follows on standard error, and the exit code is 125.

With --json it prints an array of objects.
` + jsonHelp,
		Example: `  leasehold ls
  leasehold ls deploy/ --json | jq -r '.[].name'`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage(c, "give one prefix, not %d", len(args))
			}
			return nil
		},
		ValidArgsFunction: p.completeOneName,
		RunE: func(c *cobra.Command, args []string) error {
			prefix := ""
			if len(args) > 0 {
				prefix = args[0]
			}
			return p.ask(c, func(ctx context.Context, st *store.Store) error {
				states, err := st.List(ctx, prefix)
				if err != nil && !errors.Is(err, store.ErrIncomplete) {
					return err
				}
				return errors.Join(p.writeList(states, asJSON, err == nil), err)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// writeList prints the locks that were found. whole reports whether these are
// all.
func (p *program) writeList(states []store.State, asJSON, whole bool) error {
	if asJSON {
		list := make([]statejson.State, len(states))
		for i, s := range states {
			list[i] = toJSON(s)
		}
		return writeJSON(p.stdout, list)
	}
	if len(states) == 0 {
		if whole {
			p.voice.note("no lock is held")
		}
		return nil
	}
	if err := writeTable(p.stdout, states, time.Now()); err != nil {
		return err
	}
	if i := slices.IndexFunc(states, func(s store.State) bool { return len(s.Undecided) > 0 }); i >= 0 {
		p.voice.note("some locks are marked, since they may be held: %s", store.Silent(states[i].Nodes))
	}
	return nil
}

// ask opens the store, calls fn and closes the store.
func (p *program) ask(c *cobra.Command, fn func(context.Context, *store.Store) error) error {
	return askWith(p, context.Background(), c, fn) // a signal just ends us: nothing is left behind
}

// askWith is ask with a context for both. It makes no lock folder whose path the user has
// given: that may be mistyped.
func askWith(p *program, ctx context.Context, c *cobra.Command, fn func(context.Context, *store.Store) error) error {
	if path, missing := missingFile(p, c); missing {
		return fmt.Errorf("there is no lock folder %s: check the path, since nobody has locked anything there", path)
	}
	st, err := p.openStore(ctx, c)
	if err != nil {
		return err
	}
	err = fn(ctx, st)
	if closed := st.Close(); err == nil {
		err = closed
	}
	return err
}

func writeTable(w io.Writer, states []store.State, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tKIND\tHOLDER\tHELD FOR\tEXPIRES IN\tTOKEN")
	for _, s := range states {
		held := s.Holdings()
		line := func(part, holder string, h store.Holding) {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", shown(s.Name), part, holder, heldFor(h, now), expiresIn(h.ExpiresIn), tokenOf(h))
		}
		for _, h := range held {
			line(partOf(s.Kind, held, h), h.Holder.String(), h)
		}
		for _, h := range s.Undecided {
			line(partOfUndecided(h), h.Holder.String()+" (may hold it)", h)
		}
	}
	return t.Flush()
}

// heldSince returns since when the lock is held, or the zero time if that is unknown.
// If the store cannot tell, it is when the holder asked for the lock, by its own clock.
func heldSince(s store.Holding, now time.Time) time.Time {
	if s.HeldFor > 0 {
		return now.Add(-s.HeldFor)
	}
	return s.Holder.Since
}

// heldFor compares two clocks if the store cannot tell: the holder's and ours, which
// may differ.
func heldFor(s store.Holding, now time.Time) string {
	since := heldSince(s, now)
	if since.IsZero() {
		return "-"
	}
	return ago(since, now)
}

// ago returns the time from since to now, to the second.
func ago(since, now time.Time) string {
	return brief(max(0, now.Sub(since)).Truncate(time.Second))
}

func expiresIn(d time.Duration) string {
	if d < 0 {
		return "never"
	}
	return brief(d)
}

func tokenOf(s store.Holding) string {
	if s.Token == 0 {
		return "-"
	}
	return s.Token.String()
}
