package lockview

import (
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
)

// One is a lock, as "leasehold help json" describes it.
type One struct {
	statejson.State
	Incomplete bool `json:"incomplete,omitempty"`
}

// WriteState describes a lock. few means that too few servers have answered to know its holder.
func WriteState(w io.Writer, s store.State, few bool, now time.Time) error {
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
