package quorum

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// waiting is an attempt in the queues of some nodes. A test gives it events in any order.
// Times are in milliseconds since the attempt began.
type waiting struct {
	t    *testing.T
	a    Attempt
	sent []string // by the last step
}

const waitStart = clock.Instant(1000 * time.Second)

func newWaiting(t *testing.T, nodes int) *waiting {
	cfg := Config{Nodes: nodes, NodeTimeout: 50 * time.Millisecond}
	return &waiting{t: t, a: NewWait(cfg, 3*time.Second, waitStart, false)}
}

func at(ms int) clock.Instant { return waitStart.Add(time.Duration(ms) * time.Millisecond) }

// step takes one step, and records the messages.
func (w *waiting) step(ms int, e Event) {
	w.sent = nil
	for _, s := range w.a.Step(e, at(ms), nil) {
		text := fmt.Sprintf("%s %d", s.Op, s.Node)
		for _, f := range []struct {
			set  bool
			word string
		}{{s.Again, "again"}, {s.QueueOnly, "queue only"}, {s.Tombstone, "tombstone"}, {s.AlwaysTombstone, "always"}, {s.GivesWay, "gives way"}, {s.ToSenior, "to the senior"}} {
			if f.set {
				text += ", " + f.word
			}
		}
		if s.Op == Confirm {
			text += fmt.Sprintf(" %d", s.Token)
		}
		w.sent = append(w.sent, text)
	}
}

// sends requires the last step to have sent these messages.
func (w *waiting) sends(want ...string) {
	w.t.Helper()
	if got := strings.Join(w.sent, "; "); got != strings.Join(want, "; ") {
		w.t.Fatalf("sent %q, want %q", got, strings.Join(want, "; "))
	}
}

// verdict requires the attempt to have this verdict.
func (w *waiting) verdict(want Verdict) {
	w.t.Helper()
	if got := w.a.Verdict(); got != want {
		w.t.Fatalf("verdict %d, want %d", got, want)
	}
}

// taken is the reply of a node on which another owner has the lock. senior is true if that
// owner is ahead of the attempt.
func taken(node int, by string, senior bool) Event {
	return Event{Kind: No, Node: node, Op: Acquire, Holder: by, ExpiresIn: time.Hour, Senior: senior, RetryAfter: time.Hour}
}

// granted is the reply of a node that grants the lock.
func granted(node int, token uint64) Event {
	return Event{Kind: Yes, Node: node, Op: Acquire, Token: token}
}

// handed is the push of a node that grants the request sent at ms.
func handed(node int, token uint64, ms int) Event {
	return Event{Kind: PushGranted, Node: node, Op: Acquire, Token: token, From: at(ms)}
}

// Pushes of a majority of the nodes grant the lock to a waiter. Validity counts from the
// requests that they grant.
func TestWaitIsHandedTheLock(t *testing.T) {
	w := newWaiting(t, 3)
	for n := range 3 {
		w.step(1, taken(n, "x", true))
		w.sends()
	}
	w.step(1000, Event{Kind: Tick}) // a third of the TTL: the places are refreshed
	w.sends("acquire 0, again, queue only", "acquire 1, again, queue only", "acquire 2, again, queue only")
	for n := range 3 {
		w.step(1001, taken(n, "x", true))
	}
	w.step(1500, handed(0, 7, 1000))
	w.sends()
	w.verdict(Open)
	w.step(1501, handed(2, 7, 1000))
	w.verdict(Won)
	if w.a.Token() != 7 || w.a.From() != at(1000) || w.a.Repeated() {
		t.Errorf("token %d from %v, repeated %v, want 7 from 1s and false", w.a.Token(), w.a.From().Sub(waitStart), w.a.Repeated())
	}
}

// If nodes grant requests that were sent at different times, validity counts from the
// earliest that the majority needs.
func TestValidityIsThatOfAMajority(t *testing.T) {
	w := newWaiting(t, 5)
	for n := range 5 {
		w.step(1, taken(n, "x", true))
	}
	w.step(1000, Event{Kind: Tick})
	w.step(1001, taken(0, "x", true))
	w.step(1001, taken(1, "x", true))
	w.step(1002, handed(3, 7, 0)) // its refresh has not arrived
	w.step(1003, handed(0, 7, 1000))
	w.step(1004, handed(4, 7, 0))
	w.verdict(Won)
	if w.a.From() != waitStart {
		t.Errorf("validity counts from %v, want 0s", w.a.From().Sub(waitStart))
	}
	if !w.a.Repeated() {
		t.Error("Repeated is false, want true: requests are still on their way")
	}
}

// A push that arrives too late does not count. Tokens are confirmed only on nodes whose grants
// count.
func TestOldGrantDoesNotCount(t *testing.T) {
	w := newWaiting(t, 3)
	for n := range 3 {
		w.step(1, taken(n, "x", true))
	}
	w.step(1000, Event{Kind: Tick})
	for n := range 3 {
		w.step(1001, taken(n, "x", true))
	}
	w.step(2990, handed(0, 7, 0)) // its validity ended at 2968
	w.step(2990, handed(1, 9, 1000))
	w.verdict(Open)
	w.step(2991, handed(2, 8, 1000))
	w.sends("confirm 2 9")
	w.verdict(Open)
	w.step(2992, Event{Kind: Yes, Node: 2, Op: Confirm, Token: 9})
	w.verdict(Won)
	if w.a.Token() != 9 || w.a.From() != at(1000) {
		t.Errorf("token %d from %v, want 9 from 1s", w.a.Token(), w.a.From().Sub(waitStart))
	}
}

// If a push overtakes the reply to the request that it grants, that reply does not undo the
// grant. The reply to a later request does.
func TestHandOffOvertakesAnAnswer(t *testing.T) {
	w := newWaiting(t, 1)
	w.step(1, handed(0, 7, 0))
	w.verdict(Won)

	w = newWaiting(t, 3)
	w.step(1, handed(0, 7, 0))
	w.step(2, taken(0, "x", true))
	w.step(3, granted(1, 7))
	w.verdict(Won)

	w = newWaiting(t, 3)
	w.step(1, granted(0, 7))
	w.step(2, taken(1, "x", false))
	w.step(2, taken(2, "x", false))
	w.step(1000, Event{Kind: Tick})
	w.step(1001, taken(0, "y", false)) // the grant of this node is gone
	w.step(1002, handed(1, 8, 1000))
	w.verdict(Open)
}

// If several waiters each have a part of the nodes, the junior gives way to the senior at
// once, and leaves free nodes to it.
func TestSplitIsResolved(t *testing.T) {
	w := newWaiting(t, 5)
	w.step(1, granted(0, 7))
	w.step(1, granted(1, 7))
	w.step(1, taken(2, "senior", true))
	w.step(1, taken(3, "junior", false))
	w.sends()
	w.step(2, taken(4, "senior", true))
	w.verdict(Lost)
	if !w.a.GaveWay() {
		t.Error("GaveWay is false, want true")
	}
	w.sends("release 0, gives way, to the senior", "release 1, gives way, to the senior", "release 2, gives way, to the senior",
		"release 3, gives way, to the senior", "release 4, gives way, to the senior")

	// Under its new owner value it waits in the queue, and leaves free nodes to the senior
	// for as long as that one has a part.
	next := NewWait(w.a.Config, 3*time.Second, at(3), true)
	w.a = next
	for n, holder := range []string{"", "", "senior", "junior", "senior"} {
		e := taken(n, holder, holder == "senior")
		if holder == "" {
			e = Event{Kind: Absent, Node: n, Op: Acquire, RetryAfter: time.Hour}
		}
		w.step(4, e)
		w.sends()
	}
	// The senior sees only juniors, and keeps its part.
	w = newWaiting(t, 3)
	w.step(1, granted(0, 7))
	w.step(1, taken(1, "junior", false))
	w.step(1, taken(2, "junior of juniors", false))
	w.sends()
	w.verdict(Open)
	w.step(11, Event{Kind: Tick})
	w.sends("acquire 1, again", "acquire 2, again")
	w.step(12, granted(1, 8))
	w.sends("confirm 0 8")
}

// If a holder has the majority, a waiter does not keep for long a node that the holder has
// lost.
func TestNodeThatAHolderLostIsReleased(t *testing.T) {
	w := newWaiting(t, 3)
	w.step(1, granted(0, 7))
	w.step(1, taken(1, "x", false))
	w.step(1, taken(2, "x", false))
	ms := 1
	for w.a.Verdict() == Open {
		next, ok := w.a.Next()
		if ms = int(next.Sub(waitStart).Milliseconds()); !ok || ms > 1000 {
			t.Fatalf("the waiter still has the node after %d ms, want 1000 at most", ms)
		}
		w.step(ms, Event{Kind: Tick})
		for _, s := range w.sent {
			var n int
			if _, err := fmt.Sscanf(s, "acquire %d", &n); err == nil {
				w.step(ms+1, taken(n, "x", false))
			}
		}
	}
	if ms < 100 {
		t.Errorf("the waiter released the node after %d ms, want 100 at least: the holder may be about to release the lock", ms)
	}
	w.sends("release 0, gives way", "release 1, gives way", "release 2, gives way")
}

// However short the TTL, no attempt keeps a part of the nodes for ever.
func TestShortTTLGivesWay(t *testing.T) {
	const ttl = 90 * time.Millisecond
	for name, others := range map[string][2]Event{
		"to a holder with a majority": {taken(1, "x", false), taken(2, "x", false)},
		"to a senior that is held up": {taken(1, "x", true), taken(2, "y", false)},
	} {
		w := newWaiting(t, 3)
		w.a = NewWait(w.a.Config, ttl, waitStart, false)
		w.step(1, others[0])
		w.step(1, others[1])
		answering := func(ms int, e Event) {
			w.step(ms, e)
			for asked := w.sent; len(asked) > 0 && w.a.Verdict() == Open; asked = append(asked[1:], w.sent...) {
				var n int
				if _, err := fmt.Sscanf(asked[0], "acquire %d", &n); err != nil {
					t.Fatalf("%s: sent %q, want an acquire", name, asked[0])
				}
				w.step(ms, append(others[:], granted(0, 7))[(n+2)%3])
			}
		}
		ms := 1000 // the reply of the third node arrives
		answering(ms, granted(0, 7))
		for w.a.Verdict() == Open {
			next, ok := w.a.Next()
			if ms = max(ms+1, int(next.Sub(waitStart).Milliseconds())); !ok || ms > 3000 {
				t.Fatalf("%s: it still has the node after %d ms, want 3000 at most", name, ms)
			}
			answering(ms, Event{Kind: Tick})
		}
		if !w.a.GaveWay() {
			t.Errorf("%s: GaveWay is false, want true", name)
		}
	}
}

// A waiter asks for the lock at once if a node pushes that the lock is free. If a request is
// under way, it asks again when that has its reply.
func TestFreedAndPolled(t *testing.T) {
	w := newWaiting(t, 1)
	w.step(1, taken(0, "x", true))
	w.step(5, Event{Kind: PushFree, Node: 0})
	w.sends("acquire 0, again")
	w.step(6, Event{Kind: PushFree, Node: 0}) // about the request under way
	w.sends()
	w.step(7, taken(0, "x", true))
	w.sends("acquire 0, again")
	w.step(8, Event{Kind: PushLost, Node: 0})
	w.sends()
	w.step(9, taken(0, "x", true))
	w.sends("acquire 0, again")
	w.step(10, granted(0, 7))
	w.verdict(Won)
}

// A grant that does not count is not part of a majority. It is kept while the other nodes may
// grant the lock as well, and is released before long.
func TestGrantThatDoesNotCount(t *testing.T) {
	w := newWaiting(t, 3)
	w.step(1, Event{Kind: Discounted, Node: 0, Op: Acquire})
	w.step(1, granted(1, 7))
	w.verdict(Open)
	w.step(2, granted(2, 7))
	w.verdict(Won)

	w = newWaiting(t, 3)
	w.step(1, Event{Kind: Discounted, Node: 0, Op: Acquire})
	w.step(1, taken(1, "x", true))
	w.step(1, taken(2, "x", true))
	w.verdict(Open)
	w.step(11, Event{Kind: Tick})
	w.verdict(Lost)
	if !w.a.GaveWay() {
		t.Error("GaveWay is false, want true, so that the driver begins another attempt")
	}
}

// An attempt that is cancelled gives up all places, with a tombstone on each node where a
// request may still arrive.
func TestLeavingTheQueue(t *testing.T) {
	w := newWaiting(t, 5)
	w.step(1, taken(0, "x", true))
	w.step(1, Event{Kind: Unsent, Node: 1, Op: Acquire, RetryAfter: time.Hour})
	w.step(1, Event{Kind: Unknown, Node: 2, Op: Acquire, RetryAfter: time.Millisecond})
	w.step(1, granted(3, 7))
	w.step(2, Event{Kind: Tick})
	w.sends("acquire 2, again, queue only")
	w.step(3, taken(2, "x", true)) // the first request may still arrive
	w.step(4, Event{Kind: Cancel})
	w.verdict(Lost)
	w.sends("release 0", "release 2, tombstone, always", "release 3", "release 4, tombstone, always")
	w.step(5, granted(4, 7))
	w.step(6, handed(0, 7, 0))
	w.sends()
}

// An attempt gives way only for a while to a senior owner that has a part of the nodes and
// never gets a majority.
func TestSeniorThatNeverGetsAMajority(t *testing.T) {
	w := newWaiting(t, 3)
	w.a = NewWait(w.a.Config, 3*time.Second, waitStart, true)
	w.step(1, taken(0, "senior", true))
	for n := 1; n < 3; n++ {
		w.step(1, Event{Kind: Absent, Node: n, Op: Acquire, RetryAfter: time.Hour})
	}
	w.sends()
	next, ok := w.a.Next()
	if ms := int(next.Sub(waitStart).Milliseconds()); !ok || ms > 500 {
		t.Fatalf("it asks again after %d ms, want 500 at most", ms)
	}
	w.step(int(next.Sub(waitStart).Milliseconds()), Event{Kind: Tick})
	w.sends("acquire 1, again", "acquire 2, again")
	w.step(300, granted(1, 7))
	w.step(301, granted(2, 7))
	w.verdict(Won)
}

// An attempt does not give way again if an earlier attempt has seen that owner for long.
func TestSeniorKnownFromAnEarlierAttempt(t *testing.T) {
	w := newWaiting(t, 3)
	w.a = NewWait(w.a.Config, 3*time.Second, waitStart, true)
	senior := taken(0, "senior", true)
	senior.HolderSince = at(-1000)
	w.step(1, senior)
	w.step(1, Event{Kind: Absent, Node: 1, Op: Acquire, RetryAfter: time.Hour})
	w.sends()
	w.step(2, Event{Kind: Absent, Node: 2, Op: Acquire, RetryAfter: time.Hour})
	w.sends("acquire 1, again", "acquire 2, again")
}

// A winner also asks a node for the lock that was free when the others granted it.
func TestMajorityIsFilled(t *testing.T) {
	w := newWaiting(t, 3)
	for n := range 3 {
		w.step(1, taken(n, "x", true))
	}
	w.step(5, Event{Kind: PushFree, Node: 0})
	w.step(5, Event{Kind: PushFree, Node: 1})
	w.sends("acquire 0, again", "acquire 1, again")
	w.step(6, Event{Kind: PushFree, Node: 2})
	w.sends()
	w.step(7, granted(0, 7))
	w.step(8, granted(1, 7))
	w.verdict(Won)
	w.sends("acquire 2, again")
	if !w.a.Repeated() {
		t.Error("Repeated is false, want true: a request is still on its way")
	}
	w.step(9, Event{Kind: Absent, Node: 2, Op: Acquire})
	w.sends()
	w.step(10, Event{Kind: PushFree, Node: 2}) // the lease may have been released
	w.sends()
}
