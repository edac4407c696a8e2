package zkstore

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// What a break does depends on what is there of the lease, and a lease that was broken is
// not ended before whatever was renewed earlier is over.
func TestToBreak(t *testing.T) {
	const ttl = 10 * time.Second
	held := target{held: true, token: 7, ttl: ttl}
	with := func(v target, change func(*target)) target { change(&v); return v }
	marked := func(known time.Duration) target {
		return with(held, func(v *target) { v.marked, v.noted, v.known = true, true, known })
	}
	for _, c := range []struct {
		what     string
		is       target
		do       breakStep
		left     time.Duration
		doNow    breakStep
		leftThen time.Duration
	}{
		{"held", held, breakMark, ttl, breakMarkAndEnd, 0},
		{"broken just now", marked(0), breakWait, ttl, breakEnd, 0},
		{"broken before", marked(ttl - 1), breakWait, 1, breakEnd, 0},
		{"broken a TTL ago", marked(ttl), breakEnd, 0, breakEnd, 0},
		{"broken long ago", marked(2 * ttl), breakEnd, 0, breakEnd, 0},
		{"broken and over", target{noted: true}, breakOver, 0, breakOver, 0},
		{"broken, over and held again", with(held, func(v *target) { v.token, v.noted = 8, true }), breakOver, 0, breakOver, 0},
		{"held with another token", with(held, func(v *target) { v.token = 8 }), breakNothing, 0, breakNothing, 0},
		{"not held", target{}, breakNothing, 0, breakNothing, 0},
		{"of another kind of client", target{foreign: true}, breakForeign, 0, breakForeign, 0},
	} {
		if do, left := c.is.toBreak(store.BreakRequest{Token: 7}); do != c.do || left != c.left {
			t.Errorf("%s: %d, %v left, want %d, %v", c.what, do, left, c.do, c.left)
		}
		if do, left := c.is.toBreak(store.BreakRequest{Token: 7, Now: true}); do != c.doNow || left != c.leftThen {
			t.Errorf("%s, and now: %d, %v left, want %d, %v", c.what, do, left, c.doNow, c.leftThen)
		}
	}
}

// Notes refuse the attempt whose lease was broken, whatever the clocks say, show the last break for a
// day, and do not grow for ever.
func TestNotes(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_000)
	var n notes
	write := func(b broken) {
		t.Helper()
		n = decodeJSON[notes](encodeJSON(n.add(b)))
	}
	write(broken{Owner: "one", Attempt: "a", Token: 1, Note: `{"reason":"first"}`})
	write(broken{Owner: "two", Token: 2, Note: `{"reason":"second"}`})
	for _, c := range []struct {
		owner, attempt string
		refused        bool
	}{
		{"one", "a", true},
		{"one", "b", false},
		{"one", "", false},
		{"two", "", true},
		{"three", "", false},
	} {
		if got := n.refuses(c.owner, c.attempt); got != c.refused {
			t.Errorf("%+v: refused %v, want %v", c, got, c.refused)
		}
	}
	if !n.has("one", 1) || !n.has("two", 2) || n.has("one", 2) || n.has("three", 1) {
		t.Errorf("%+v, want those of one and two", n)
	}
	if b := n.shown(at, at.Add(time.Hour)); b == nil || b.Owner != "two" || b.Token != 2 || b.Reason != "second" {
		t.Errorf("shown: %+v, want the second", b)
	}
	if b := n.shown(at, at.Add(store.KeepBroken+1)); b != nil {
		t.Errorf("shown after a day: %+v, want none", b)
	}
	if b := (notes{}).shown(at, at); b != nil {
		t.Errorf("shown without a break: %+v, want none", b)
	}
	long := store.BreakRequest{By: strings.Repeat("\x01", store.MaxNote), Reason: strings.Repeat("\x01", store.MaxNote)}.Note()
	for i := range 1000 {
		write(broken{Owner: fmt.Sprint("owner ", i), Token: 3, Note: long})
	}
	if n.has("two", 2) || !n.has("owner 999", 3) || !n.has("owner 990", 3) {
		t.Error("the last ones are not kept")
	}
	if size := len(encodeJSON(n)); size > 64<<10 {
		t.Errorf("the notes about one lock have %d bytes, want at most 64 KiB", size)
	}
	if decodeJSON[notes]([]byte("[]")).shown(at, at) != nil || decodeJSON[notes](nil).shown(at, at) != nil {
		t.Error("what another client wrote is a note")
	}
}

// A client that is notified late learns of all breaks since, as far as they are kept.
func TestAnnounced(t *testing.T) {
	var h announced
	add := func(n int) {
		for range n {
			h = decodeJSON[announced](encodeJSON(h.add(fmt.Sprint(h.Count))))
		}
	}
	if got := h.since(0); len(got) != 0 {
		t.Errorf("before a break: %q, want none", got)
	}
	add(3)
	if got := h.since(1); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("since the first: %q, want 1 and 2", got)
	}
	if got := h.since(3); len(got) != 0 {
		t.Errorf("since the last: %q, want none", got)
	}
	if got := h.since(9); !slices.Equal(got, []string{"0", "1", "2"}) {
		t.Errorf("after the node was made anew: %q, want all", got)
	}
	add(100)
	if got := h.since(3); len(got) != mostAnnounced || got[0] != "71" || got[mostAnnounced-1] != "102" {
		t.Errorf("after many: %q, want the last ones", got)
	}
	if got := decodeJSON[announced]([]byte("[]")).since(0); len(got) != 0 {
		t.Errorf("of what another client wrote: %q, want none", got)
	}
}
