package quorum_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/proof/modelnode"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/internal/validity"
)

// ttl of all leases, beside which the drift allowance is short.
const ttl = 10 * time.Second

// holder is one owner of permits, from its attempt to the end of its lease.
type holder struct {
	name    string
	weight  int64
	began   clock.Instant
	attempt quorum.Attempt
	lease   bool
	until   clock.Instant
	vote    *quorum.Vote // of a renewal
	voted   clock.Instant
}

// valid reports whether the holder counts on its lease.
func (h *holder) valid(now clock.Instant) bool { return h.lease && now < h.until }

// letter is a request under way, or the reply to it.
type letter struct {
	to     *holder
	send   quorum.Send
	answer *quorum.Event // the reply; nil while the request is under way
	unread bool          // nothing waits for the reply
	vote   *quorum.Vote  // the vote that the reply is for, if any
}

// permits is a semaphore over several nodes. Messages arrive in any order, late, or never.
type permits struct {
	t       *testing.T
	rand    *rand.Rand
	limit   int64
	now     clock.Instant
	nodes   []modelnode.Shared
	holders []*holder
	mail    []*letter
	tops    map[int64]uint64 // the largest token granted for each slot
	granted int
	moved   int // requests for exact slots
}

func (w *permits) config() quorum.Config {
	return quorum.Config{Nodes: len(w.nodes), NodeTimeout: time.Second}
}

// begin makes a new owner attempt to get permits.
func (w *permits) begin() {
	h := &holder{name: fmt.Sprintf("owner%d", len(w.holders)), weight: 1 + w.rand.Int64N(w.limit), began: w.now}
	h.attempt.Begin(w.config(), ttl, w.now)
	w.holders = append(w.holders, h)
	for n := range w.nodes {
		w.mail = append(w.mail, &letter{to: h, send: quorum.Send{Node: n, Op: quorum.Acquire}})
	}
}

// ask returns what a request asks a node for.
func (l *letter) ask(limit int64) rule.Ask {
	a := rule.Ask{Spec: rule.Semaphore(limit), Owner: l.to.name, Weight: l.to.weight, TTL: ttl, Fair: true, Numbered: true}
	if l.send.Slots != "" {
		a.Slots, a.Exact = rule.Slots(l.send.Slots), true
	}
	return a
}

// arrive makes a node execute a request.
func (w *permits) arrive(l *letter) {
	var ans modelnode.Answer[string]
	var slots rule.Slots
	n, ask, r := &w.nodes[l.send.Node], l.ask(w.limit), modelnode.KindRules{}
	switch l.send.Op {
	case quorum.Acquire:
		*n, ans, slots = n.Acquire(r, ask, w.now)
	case quorum.Confirm:
		*n, ans = n.Confirm(ask.Owner, ask.Slots, l.send.Token, w.now)
	case quorum.Extend:
		*n, ans = n.Extend(r, ask, w.now)
	case quorum.Heal:
		*n, ans = n.Heal(r, ask, w.now)
	case quorum.Release:
		tombstone := time.Duration(0)
		if l.send.Tombstone {
			tombstone = 100 * ttl // longer than any request is under way
		}
		*n, ans = n.Release(rule.End{Owner: ask.Owner, Tombstone: tombstone}, l.send.AlwaysTombstone, w.now)
	}
	e := quorum.Event{Kind: quorum.No, Node: l.send.Node, Op: l.send.Op}
	switch {
	case ans.Verdict == modelnode.Done:
		e.Kind, e.Token, e.Slots = quorum.Yes, ans.Token, string(slots)
	case ans.Verdict == modelnode.Taken && ans.Holder == "":
		e.Kind = quorum.Absent
	}
	l.answer = &e
}

// receive passes an event to the attempt or the vote that waits for it.
func (w *permits) receive(l *letter, e quorum.Event) {
	if l.vote != nil {
		w.receiveVote(l, e)
		return
	}
	if l.send.Op == quorum.Acquire || l.send.Op == quorum.Confirm {
		w.step(l.to, e)
	}
}

// step steps an attempt.
func (w *permits) step(h *holder, e quorum.Event) {
	before := h.attempt.Verdict()
	for _, s := range h.attempt.Step(e, w.now, nil) {
		w.mail = append(w.mail, &letter{to: h, send: s})
		if s.Op == quorum.Acquire {
			w.moved++
		}
	}
	if before == quorum.Open && h.attempt.Verdict() == quorum.Won {
		h.lease, h.until = true, validity.Until(h.attempt.From(), ttl)
		w.grant(h)
	}
}

// grant checks the token of a grant in each of its slots.
func (w *permits) grant(h *holder) {
	w.granted++
	numbers, ok := rule.Slots(h.attempt.Slots()).Numbers()
	if !ok || int64(len(numbers)) != h.weight {
		w.t.Fatalf("%s was granted slots %q, want %d of them", h.name, h.attempt.Slots(), h.weight)
	}
	for _, n := range numbers {
		if h.attempt.Token() <= w.tops[n] {
			w.t.Fatalf("%s was granted slot %d with token %d, want more than %d", h.name, n, h.attempt.Token(), w.tops[n])
		}
		w.tops[n] = h.attempt.Token()
	}
}

// renew begins a renewal.
func (w *permits) renew(h *holder) {
	v := quorum.NewVote(w.config(), quorum.Extend, w.now)
	h.vote, h.voted = &v, w.now
	for n := range w.nodes {
		w.mail = append(w.mail, &letter{to: h, vote: h.vote, send: quorum.Send{Node: n, Op: quorum.Extend, Slots: h.attempt.Slots()}})
	}
}

// receiveVote passes an event to a renewal.
func (w *permits) receiveVote(l *letter, e quorum.Event) {
	h, before := l.to, l.vote.Verdict()
	for _, s := range l.vote.Step(e, w.now, nil) {
		s.Slots = h.attempt.Slots()
		w.mail = append(w.mail, &letter{to: h, send: s})
	}
	if before == quorum.Open && l.vote.Verdict() == quorum.Won && h.valid(w.now) {
		h.until = max(h.until, validity.Until(h.voted, ttl))
	}
	if l.vote.Verdict() != quorum.Open && h.vote == l.vote {
		h.vote = nil
	}
}

// release ends a lease at all nodes.
func (w *permits) release(h *holder) {
	h.lease = false
	for n := range w.nodes {
		w.mail = append(w.mail, &letter{to: h, send: quorum.Send{Node: n, Op: quorum.Release, Tombstone: true, AlwaysTombstone: true}})
	}
}

// act does one thing at random.
func (w *permits) act() {
	switch k := w.rand.IntN(100); {
	case k < 8 && len(w.holders) < 40:
		w.begin()
	case k < 12:
		w.now = w.now.Add(time.Duration(w.rand.Int64N(int64(ttl) / 4)))
		for _, h := range w.holders {
			if h.attempt.Verdict() == quorum.Open {
				w.step(h, quorum.Event{Kind: quorum.Tick})
			}
		}
	case k < 20 && len(w.holders) > 0:
		if h := w.holders[w.rand.IntN(len(w.holders))]; h.valid(w.now) {
			if w.rand.IntN(2) == 0 {
				w.release(h)
			} else if h.vote == nil {
				w.renew(h)
			}
		}
	case len(w.mail) > 0:
		w.deliver(w.rand.IntN(len(w.mail)))
	}
}

// deliver lets a message arrive, or makes its sender stop waiting for the reply.
func (w *permits) deliver(i int) {
	l := w.mail[i]
	switch {
	case l.answer != nil:
		w.mail = slices.Delete(w.mail, i, i+1)
		if !l.unread {
			w.receive(l, *l.answer)
		}
	case !l.unread && w.rand.IntN(20) == 0:
		l.unread = true
		w.receive(l, quorum.Event{Kind: quorum.Unknown, Node: l.send.Node, Op: l.send.Op})
	default:
		w.arrive(l)
	}
}

// check checks the leases that are valid at present.
func (w *permits) check() {
	var room int64
	taken := map[int64]string{}
	for _, h := range w.holders {
		if !h.valid(w.now) {
			continue
		}
		room += h.weight
		numbers, _ := rule.Slots(h.attempt.Slots()).Numbers()
		for _, n := range numbers {
			if other := taken[n]; other != "" {
				w.t.Fatalf("%s and %s both hold slot %d", other, h.name, n)
			}
			taken[n] = h.name
		}
	}
	if room > w.limit {
		w.t.Fatalf("the valid leases have weight %d in all, want %d at most", room, w.limit)
	}
}

// Over several nodes the leases of a semaphore never exceed its limit, no slot has two
// holders, and tokens rise in each slot, also with weights, with renewals, and if messages
// arrive in any order, late, or never.
func TestPermitsOverNodes(t *testing.T) {
	granted, moved := 0, 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 17))
		w := &permits{t: t, rand: r, limit: 2 + r.Int64N(4), now: clock.Instant(time.Hour), nodes: make([]modelnode.Shared, 3+2*r.IntN(2)), tops: map[int64]uint64{}}
		for range 1500 {
			w.act()
			w.check()
		}
		granted, moved = granted+w.granted, moved+w.moved
	}
	if granted < 500 || moved < 100 {
		t.Errorf("%d grants and %d requests for exact slots, want 500 and 100 at least", granted, moved)
	}
	t.Logf("%d grants, %d requests for exact slots", granted, moved)
}
