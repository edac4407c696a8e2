package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/screen"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/voice"
	"github.com/leasehold-dev/leasehold/internal/excerpt"
	"github.com/leasehold-dev/leasehold/internal/statejson"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/spf13/cobra"
)

func (p *program) lsCommand() *cobra.Command {
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
				if l.states == nil && l.err != nil {
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
	states  []store.State
	waiting map[string]int // how many wait for each lock, if that was counted
	err     error          // why it is not all
}

// mostCounted is how many locks a list can have whose waiters are counted: each takes a question to
// the store.
const mostCounted = 200

// listed lists locks and counts their waiters.
func listed(ctx context.Context, st *store.Store, prefix string) listing {
	states, err := st.List(ctx, prefix)
	l := listing{states: states, err: err}
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
	l.waiting = map[string]int{}
	for i, s := range states {
		if counts[i] >= 0 {
			l.waiting[s.Name] = counts[i]
		}
	}
	return l
}

// listedJSON is a lock in a list, as "leasehold help json" describes it.
type listedJSON struct {
	statejson.State
	Waiters *int `json:"waiters,omitempty"`
}

func (l listing) json() []listedJSON {
	list := make([]listedJSON, len(l.states))
	for i, s := range l.states {
		list[i].State = toJSON(s)
		if n, ok := l.waiting[s.Name]; ok {
			list[i].Waiters = &n
		}
	}
	return list
}

// writeList prints the locks that were found.
func (p *program) writeList(l listing, asJSON bool) error {
	if asJSON {
		return writeJSON(p.stdout, l.json())
	}
	if len(l.states) == 0 {
		if l.err == nil {
			p.voice.Note("no lock is held")
		}
		return nil
	}
	if _, err := p.stdout.WriteString(screen.Table(l.rows(time.Now()))); err != nil {
		return err
	}
	if note := l.note(); note != "" && l.err == nil {
		p.voice.Note("%s", note)
	}
	return nil
}

// note says what is not certain about the list, or is empty.
func (l listing) note() string {
	if i := slices.IndexFunc(l.states, func(s store.State) bool { return len(s.Undecided) > 0 }); i >= 0 {
		return "some locks are marked, since they may be held: " + store.Silent(l.states[i].Nodes)
	}
	return ""
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
	if path, missing := missingFile(p, c); missing {
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

// rows returns the list as a table.
func (l listing) rows(now time.Time) [][]string {
	rows := [][]string{{"NAME", "KIND", "HOLDER", "HELD FOR", "EXPIRES IN", "WAITERS", "TOKEN"}}
	for _, s := range l.states {
		held := s.Holdings()
		waiters := "-"
		if n, ok := l.waiting[s.Name]; ok {
			waiters = waitersText(n)
		}
		line := func(part, holder string, h store.Holding) {
			rows = append(rows, []string{voice.Shown(s.Name), part, holder, heldFor(h, now), expiresIn(h.ExpiresIn), waiters, tokenOf(h)})
			waiters = ""
		}
		for _, h := range held {
			line(partOf(s.Kind, held, h), holderText(s.Name, h, now), h)
		}
		for _, h := range s.Undecided {
			line(partOfUndecided(h), holderText(s.Name, h, now)+" (may hold it)", h)
		}
	}
	return rows
}

// waitersText says how many wait. A store tells of the first ones only.
func waitersText(n int) string {
	if n >= store.MaxQueue {
		return fmt.Sprintf("%d+", n)
	}
	return fmt.Sprint(n)
}

// holderText names a holder. That of a lease that nobody renews need not be running, and its process
// is not to be looked for.
func holderText(name string, h store.Holding, now time.Time) string {
	if !h.Holder.Unrenewed {
		return h.Holder.String()
	}
	if since := heldSince(h, now); isTick(name) && !since.IsZero() && h.ExpiresIn >= 0 {
		return fmt.Sprintf("ran at %s on %s, remembered until %s", clockTime(since, now), hostText(h.Holder), clockTime(now.Add(h.ExpiresIn), now))
	}
	text := hostText(h.Holder)
	if h.Holder.Purpose != "" {
		text += " (" + excerpt.AtMost(h.Holder.Purpose, mostPurpose) + ")"
	}
	return text + ", no process renews it"
}

const mostPurpose = 80 // bytes, as store.Holder shows it

// hostText names the host of a holder, or else its owner.
func hostText(h store.Holder) string {
	if h.Host == "" {
		return voice.Shown(h.Owner)
	}
	return excerpt.AtMost(h.Host, mostPurpose)
}

// isTick reports whether a lock is the record of a tick, as leasehold.Client.Once names it, such as
// backup@1h0m0s/3.
func isTick(name string) bool {
	_, tick, ok := cutLast(name, "@")
	every, number, numbered := cutLast(tick, "/")
	every, _, _ = strings.Cut(every, "+")
	_, err := time.ParseDuration(every)
	_, notNumber := strconv.Atoi(number)
	return ok && numbered && err == nil && notNumber == nil
}

// cutLast is strings.Cut around the last sep.
func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// clockTime returns a local time, with the day unless it is today.
func clockTime(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
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
	return voice.Brief(max(0, now.Sub(since)).Truncate(time.Second))
}

func expiresIn(d time.Duration) string {
	if d < 0 {
		return "never"
	}
	return voice.Brief(d)
}

func tokenOf(s store.Holding) string {
	if s.Token == 0 {
		return "-"
	}
	return s.Token.String()
}
