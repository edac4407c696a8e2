package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/voice"
	"github.com/leasehold-dev/leasehold/internal/excerpt"
	"github.com/leasehold-dev/leasehold/internal/statejson"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/spf13/cobra"
)

func (p *program) showCommand() *cobra.Command {
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
					return errors.Join(writeJSON(p.stdout, shownJSON{toJSON(s), few}), err)
				case p.voice.Quiet:
					return err
				}
				return errors.Join(writeState(p.stdout, s, few, time.Now()), err)
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

// shownJSON is a lock, as "leasehold help json" describes it.
type shownJSON struct {
	statejson.State
	Incomplete bool `json:"incomplete,omitempty"`
}

// writeState describes a lock. few means that too few servers have answered to know who holds it.
func writeState(w io.Writer, s store.State, few bool, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(key, value string) { fmt.Fprintf(t, "%s\t%s\n", key, value) }
	row("lock", voice.Shown(s.Name))
	switch held := s.Holdings(); {
	case s.Free() && few:
		row("held by", "unknown: the servers that answered have no lease, and too few have answered")
	case s.Free():
		row("held by", "nobody")
	case statejson.IsOne(s.Kind, held):
		row("kind", "mutex")
		row("held by", holderText(s.Name, held[0], now))
		writeHolding(row, held[0], "", now)
	case len(held) == 0:
		kind := s.Undecided[0].Kind
		if !slices.ContainsFunc(s.Undecided, func(h store.Holding) bool { return h.Kind.Normal() != kind.Normal() }) {
			row("kind", kind.String())
		}
	default:
		row("kind", kindText(s.Kind, held))
		for i, h := range held {
			row(fmt.Sprintf("holder %d", i+1), partOf(s.Kind, held, h))
			row("held by", holderText(s.Name, h, now))
			writeHolding(row, h, "", now)
		}
	}
	for _, h := range s.Undecided {
		holder := holderText(s.Name, h, now)
		if !h.Kind.IsMutex() {
			holder += ", " + partOfUndecided(h)
		}
		row("may be held by", holder)
		writeHolding(row, h, "at most ", now)
	}
	if len(s.Undecided) > 0 {
		row("undecided", store.Silent(s.Nodes)+", on which it depends")
	}
	if s.Broken != nil {
		row("broken", brokenText(s))
	}
	for i, p := range s.Queue {
		key := ""
		if i == 0 {
			key = "waiting"
		}
		row(key, fmt.Sprintf("%d. %s", i+1, placeText(p, now)))
	}
	for i, n := range s.Nodes {
		key := ""
		if i == 0 {
			key = "nodes"
		}
		row(key, strings.ReplaceAll(voice.Safe(n.String()), "\n", " "))
	}
	return t.Flush()
}

// writeHolding describes one lease, after its holder, in rows of a key and a value. most says
// how exactly its end is known.
func writeHolding(row func(key, value string), h store.Holding, most string, now time.Time) {
	row("owner", voice.Shown(h.Holder.Owner))
	if id := h.Holder.TraceID(); id != "" {
		row("trace", id)
	}
	if since := heldSince(h, now); !since.IsZero() {
		row("since", fmt.Sprintf("%s (%s ago)", since.Local().Format(time.RFC3339), heldFor(h, now)))
	}
	switch {
	case h.ExpiresIn < 0:
		row("expires", "never: the key has no TTL, so it was not set by a lock client with leases")
	case h.Holder.Broken:
		row("expires", "in "+most+voice.Brief(h.ExpiresIn)+", or when its holder releases it: it was broken and cannot be renewed")
	default:
		row("expires", "in "+most+voice.Brief(h.ExpiresIn)+unlessRenewed(h.Holder))
	}
	row("token", tokenOf(h))
}

// unlessRenewed ends a text about the end of a lease.
func unlessRenewed(h store.Holder) string {
	if h.Unrenewed {
		return ""
	}
	return " unless renewed"
}

// brokenText says who broke which lease of a lock.
func brokenText(s store.State) string {
	b := s.Broken
	which := "an earlier lease"
	held := s.Holdings()
	for i, h := range s.Leases() {
		switch {
		case h.Holder.Owner != b.Owner || h.Token != b.Token:
		case statejson.IsOne(s.Kind, held), len(held) == 0 && len(s.Undecided) == 1:
			which = "this lease"
		case i >= len(held):
			which = "the lease that may be held by " + h.Holder.String()
		default:
			which = fmt.Sprintf("the lease of holder %d", i+1)
		}
	}
	by := "somebody"
	if b.By != "" {
		by = excerpt.Of(b.By)
	}
	text := fmt.Sprintf("%s (token %v), by %s", which, b.Token, by)
	if !b.At.IsZero() {
		text += " at " + b.At.Local().Format(time.RFC3339)
	}
	if b.Now {
		text += ", without waiting for the holder"
	}
	if b.Reason != "" {
		text += ": " + excerpt.Of(b.Reason)
	}
	return text
}

// placeText describes one waiter.
func placeText(p store.Place, now time.Time) string {
	s := p.Holder.String()
	if !p.Holder.Since.IsZero() {
		s += fmt.Sprintf(", since %s (%s ago)", p.Holder.Since.Local().Format(time.RFC3339), ago(p.Holder.Since, now))
	}
	if p.ExpiresIn < 0 {
		return s + ", place never expires"
	}
	return s + ", place expires in " + voice.Brief(p.ExpiresIn) + " unless refreshed"
}
