package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/lockview"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/spf13/cobra"
)

func lsCommand(p *program) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:   "ls [PREFIX]",
		Short: "List the locks that are held",
		Long: `Lists the locks that are held and whose names begin with PREFIX, sorted by name:
the name, what kind of lock it is, the holder, how long it has held the lock, when the
lease ends unless it is renewed, how many wait, and the fencing token. Of a semaphore and
of a read-write lock, each holder has a line of its own. Names with unusual characters are
quoted. If some of several servers do not answer, it can depend on them whether a lease
is held: its holder is then marked as one that may hold the lock. If too few answer, the
locks that the others know are listed so, and the exit code is 125. Of a Redis Cluster, the
locks of the masters that answer are listed, which is certain, and the exit code is 125 too.

A lock that "leasehold acquire" acquired has no process that renews it. A tick of a job
(run --once-per) that the store remembers is listed as one that ran.

How many wait is not counted if more than 200 locks are listed. On Redis, locks that other
programs made by themselves (SET NX) are not listed: "leasehold show NAME" shows them. If a
server has too many keys, or never says that there are no more, the list is cut: the locks
found so far are printed, the reason follows on standard error, and the exit code is 125.

With --json it prints an array of objects: "leasehold help json" describes them.`,
		Example: `  leasehold ls
  watch leasehold ls                    # again and again, as it changes
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
			return p.look(c, func(ctx context.Context, st *store.Store) error {
				l := listed(ctx, st, prefix)
				if l.States == nil && l.err != nil {
					return l.err
				}
				return errors.Join(p.writeList(l, asJSON), l.err)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// listing is what List returned.
type listing struct {
	lockview.List
	err error // why it is not all
}

// mostCounted is how many locks a list can have whose waiters are counted: each takes a question to
// the store.
const mostCounted = 200

// listed lists locks and counts their waiters.
func listed(ctx context.Context, st *store.Store, prefix string) listing {
	states, err := st.List(ctx, prefix)
	l := listing{lockview.List{States: states}, err}
	if err != nil && !errors.Is(err, store.ErrIncomplete) || len(states) > mostCounted {
		return l
	}
	counts := make([]int, len(states))
	var all sync.WaitGroup
	next := make(chan int)
	for range min(16, len(states)) {
		all.Go(func() {
			for i := range next {
				counts[i] = -1
				if s, err := st.Inspect(ctx, states[i].Name); err == nil {
					counts[i] = len(s.Queue)
				}
			}
		})
	}
	for i := range states {
		next <- i
	}
	close(next)
	all.Wait()
	l.Waiting = map[string]int{}
	for i, s := range states {
		if counts[i] >= 0 {
			l.Waiting[s.Name] = counts[i]
		}
	}
	return l
}

// writeList prints the locks that were found.
func (p *program) writeList(l listing, asJSON bool) error {
	if asJSON {
		return lockview.WriteJSON(p.stdout, l.JSON())
	}
	if len(l.States) == 0 {
		if l.err == nil {
			p.voice.Note("no lock is held")
		}
		return nil
	}
	if _, err := p.stdout.WriteString(l.Table(time.Now())); err != nil {
		return err
	}
	if note := l.Note(); note != "" && l.err == nil {
		p.voice.Note("%s", note)
	}
	return nil
}

// look opens the store to look at locks, calls fn and closes the store. Few servers of several
// suffice.
func (p *program) look(c *cobra.Command, fn func(context.Context, *store.Store) error) error {
	return askWith(p, context.Background(), c, true, fn) // a signal just ends us: nothing is left behind
}

// ask opens the store, calls fn and closes the store.
func (p *program) ask(c *cobra.Command, fn func(context.Context, *store.Store) error) error {
	return askWith(p, context.Background(), c, false, fn)
}

// askWith is ask or look with a context for both. What a store logs while it is looked at is printed
// at the end. It makes no lock folder whose path the user has
// given: that may be mistyped.
func askWith(p *program, ctx context.Context, c *cobra.Command, looks bool, fn func(context.Context, *store.Store) error) error {
	if path, own := p.missingFolder(c); path != "" && !own {
		return fmt.Errorf("there is no lock folder %s: check the path, since nobody has locked anything there", path)
	}
	log, settle := p.voice.StoreLogger()
	st, err := p.open(ctx, c, store.OpenOptions{Logger: log, Partial: looks})
	if err != nil || !looks {
		settle(err == nil)
	}
	if err != nil {
		return err
	}
	err = fn(ctx, st)
	if looks { // an error about servers says the same as their warnings
		settle(!errors.Is(err, store.ErrQuorum))
	}
	if closed := st.Close(); err == nil {
		err = closed
	}
	return err
}
