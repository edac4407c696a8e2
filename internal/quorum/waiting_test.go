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

const lineStart = clock.Instant(1000 * time.Second)

func newWaiting(t *testing.T, nodes int) *waiting {
	cfg := Config{Nodes: nodes, NodeTimeout: 50 * time.Millisecond}
	return &waiting{t: t, a: NewWait(cfg, 3*time.Second, lineStart, false)}
}

func at(ms int) clock.Instant { return lineStart.Add(time.Duration(ms) * time.Millisecond) }

// hears takes one step, and records the messages.
func (w *waiting) hears(ms int, e Event) {
	w.sent = nil
	for _, s := range w.a.Step(e, at(ms), nil) {
		text := fmt.Sprintf("%s %d", s.Op, s.Node)
		for _, f := range []struct {
			set  bool
			word string
		}{{s.Again, "again"}, {s.QueueOnly, "stand"}, {s.Tomb, "tomb"}, {s.AlwaysTomb, "always"}, {s.GivesWay, "gives way"}, {s.ToSenior, "to the senior"}} {
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

func (w *waiting) sends(want ...string) {
	w.t.Helper()
	if got := strings.Join(w.sent, "; "); got != strings.Join(want, "; ") {
		w.t.Fatalf("sent %q, want %q", got, strings.Join(want, "; "))
	}
}

func (w *waiting) stands(want Verdict) {
	w.t.Helper()
	if got := w.a.Verdict(); got != want {
		w.t.Fatalf("verdict %d, want %d", got, want)
	}
}

// taken is the answer of a node on which another owner has the lock. senior says whether
// that owner comes before the attempt.
func taken(node int, by string, senior bool) Event {
	return Event{Kind: No, Node: node, Op: Acquire, Holder: by, ExpiresIn: time.Hour, Senior: senior, RetryAfter: time.Hour}
}

func granted(node int, token uint64) Event {
	return Event{Kind: Yes, Node: node, Op: Acquire, Token: token}
}

// handed is a node's push: it grants the request that left at that time.
func handed(node int, token uint64, ms int) Event {
	return Event{Kind: PushGranted, Node: node, Op: Acquire, Token: token, From: at(ms)}
}

func TestWaitIsHandedTheLock(t *testing.T) {
	w := newWaiting(t, 3)
	for n := range 3 {
		w.hears(1, taken(n, "x", true))
		w.sends()
	}
	w.hears(1000, Event{Kind: Tick}) // a third of the TTL: the places are refreshed
	w.sends("acquire 0, again, stand", "acquire 1, again, stand", "acquire 2, again, stand")
	for n := range 3 {
		w.hears(1001, taken(n, "x", true))
	}
	w.hears(1500, handed(0, 7, 1000))
	w.sends()
	w.stands(Open)
	w.hears(1501, handed(2, 7, 1000))
	w.stands(Won)
	if w.a.Token() != 7 || w.a.From() != at(1000) || w.a.Repeated() {
		t.Errorf("token %d from %v, repeated %v", w.a.Token(), w.a.From().Sub(lineStart), w.a.Repeated())
	}
}

// Grants that answer requests of different times count from the earliest that
// the majority needs.
func TestValidityIsThatOfAMajority(t *testing.T) {
	w := newWaiting(t, 5)
	for n := range 5 {
		w.hears(1, taken(n, "x", true))
	}
	w.hears(1000, Event{Kind: Tick})
	w.hears(1001, taken(0, "x", true))
	w.hears(1001, taken(1, "x", true))
	w.hears(1002, handed(3, 7, 0)) // its refresh has not arrived
	w.hears(1003, handed(0, 7, 1000))
	w.hears(1004, handed(4, 7, 0))
	w.stands(Won)
	if w.a.From() != lineStart {
		t.Errorf("counts from %v after the start", w.a.From().Sub(lineStart))
	}
	if !w.a.Repeated() {
		t.Error("it does not report requests that are still on their way")
	}
}

// A push that comes too late does not count, and tokens are confirmed only on nodes whose
// grants do.
func TestOldGrantDoesNotCount(t *testing.T) {
	w := newWaiting(t, 3)
	for n := range 3 {
		w.hears(1, taken(n, "x", true))
	}
	w.hears(1000, Event{Kind: Tick})
	for n := range 3 {
		w.hears(1001, taken(n, "x", true))
	}
	w.hears(2990, handed(0, 7, 0)) // over at 2968
	w.hears(2990, handed(1, 9, 1000))
	w.stands(Open)
	w.hears(2991, handed(2, 8, 1000))
	w.sends("confirm 2 9")
	w.stands(Open)
	w.hears(2992, Event{Kind: Yes, Node: 2, Op: Confirm, Token: 9})
	w.stands(Won)
	if w.a.Token() != 9 || w.a.From() != at(1000) {
		t.Errorf("token %d from %v", w.a.Token(), w.a.From().Sub(lineStart))
	}
}

// If a push overtakes the answer to the request that it grants, that answer does not undo
// the grant. A later answer does.
func TestHandOffOvertakesAnAnswer(t *testing.T) {
	w := newWaiting(t, 1)
	w.hears(1, handed(0, 7, 0))
	w.stands(Won)

	w = newWaiting(t, 3)
	w.hears(1, handed(0, 7, 0))
	w.hears(2, taken(0, "x", true))
	w.hears(3, granted(1, 7))
	w.stands(Won)

	w = newWaiting(t, 3)
	w.hears(1, granted(0, 7))
	w.hears(2, taken(1, "x", false))
	w.hears(2, taken(2, "x", false))
	w.hears(1000, Event{Kind: Tick})
	w.hears(1001, taken(0, "y", false)) // gone meanwhile
	w.hears(1002, handed(1, 8, 1000))
	w.stands(Open)
}

// If several waiters have a part of the nodes each, the junior gives way at once, and waits
// until the senior has all nodes.
func TestSplitIsResolved(t *testing.T) {
	w := newWaiting(t, 5)
	w.hears(1, granted(0, 7))
	w.hears(1, granted(1, 7))
	w.hears(1, taken(2, "senior", true))
	w.hears(1, taken(3, "junior", false))
	w.sends()
	w.hears(2, taken(4, "senior", true))
	w.stands(Lost)
	if !w.a.GaveWay() {
		t.Error("it does not report that it gives way")
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
		w.hears(4, e)
		w.sends()
	}
	// The senior sees juniors only, and stays.
	w = newWaiting(t, 3)
	w.hears(1, granted(0, 7))
	w.hears(1, taken(1, "junior", false))
	w.hears(1, taken(2, "junior of juniors", false))
	w.sends()
	w.stands(Open)
	w.hears(11, Event{Kind: Tick})
	w.sends("acquire 1, again", "acquire 2, again")
	w.hears(12, granted(1, 8))
	w.sends("confirm 0 8")
}

// A waiter does not keep a node for long that a holder with a majority has lost.
func TestPartOfAMajoritysNodesIsGivenBack(t *testing.T) {
	w := newWaiting(t, 3)
	w.hears(1, granted(0, 7))
	w.hears(1, taken(1, "x", false))
	w.hears(1, taken(2, "x", false))
	ms := 1
	for w.a.Verdict() == Open {
		next, ok := w.a.Next()
		if ms = int(next.Sub(lineStart).Milliseconds()); !ok || ms > 1000 {
			t.Fatalf("it still has the node after %d ms", ms)
		}
		w.hears(ms, Event{Kind: Tick})
		for _, s := range w.sent {
			var n int
			if _, err := fmt.Sscanf(s, "acquire %d", &n); err == nil {
				w.hears(ms+1, taken(n, "x", false))
			}
		}
	}
	if ms < 100 {
		t.Errorf("after %d ms it was given back: the holder may just have been releasing", ms)
	}
	w.sends("release 0, gives way", "release 1, gives way", "release 2, gives way")
}

// However short the TTL, no attempt keeps a part of the nodes for ever.
func TestShortTTLGivesWay(t *testing.T) {
	const ttl = 90 * time.Millisecond
	for name, others := range map[string][2]Event{
		"to one with a majority": {taken(1, "x", false), taken(2, "x", false)},
		"to a senior held up":    {taken(1, "x", true), taken(2, "y", false)},
	} {
		w := newWaiting(t, 3)
		w.a = NewWait(w.a.Config, ttl, lineStart, false)
		w.hears(1, others[0])
		w.hears(1, others[1])
		answering := func(ms int, e Event) {
			w.hears(ms, e)
			for asked := w.sent; len(asked) > 0 && w.a.Verdict() == Open; asked = append(asked[1:], w.sent...) {
				var n int
				if _, err := fmt.Sscanf(asked[0], "acquire %d", &n); err != nil {
					t.Fatalf("%s: it sends %q", name, asked[0])
				}
				w.hears(ms, append(others[:], granted(0, 7))[(n+2)%3])
			}
		}
		ms := 1000 // when it learns that it has the third
		answering(ms, granted(0, 7))
		for w.a.Verdict() == Open {
			next, ok := w.a.Next()
			if ms = max(ms+1, int(next.Sub(lineStart).Milliseconds())); !ok || ms > 3000 {
				t.Fatalf("%s: it still has the node after %d ms", name, ms)
			}
			answering(ms, Event{Kind: Tick})
		}
		if !w.a.GaveWay() {
			t.Errorf("%s: it did not give way", name)
		}
	}
}

// A waiter asks for a lock that has become free, at once if the node pushes that.
func TestFreedAndPolled(t *testing.T) {
	w := newWaiting(t, 1)
	w.hears(1, taken(0, "x", true))
	w.hears(5, Event{Kind: PushFree, Node: 0})
	w.sends("acquire 0, again")
	w.hears(6, Event{Kind: PushFree, Node: 0}) // about the request under way
	w.sends()
	w.hears(7, taken(0, "x", true))
	w.sends("acquire 0, again")
	w.hears(8, Event{Kind: PushLost, Node: 0})
	w.sends()
	w.hears(9, taken(0, "x", true))
	w.sends("acquire 0, again")
	w.hears(10, granted(0, 7))
	w.stands(Won)
}

// A grant that does not count is no part of a majority. It is kept while it may be of use,
// and given back before long.
func TestGrantThatDoesNotCount(t *testing.T) {
	w := newWaiting(t, 3)
	w.hears(1, Event{Kind: Discounted, Node: 0, Op: Acquire})
	w.hears(1, granted(1, 7))
	w.stands(Open)
	w.hears(2, granted(2, 7))
	w.stands(Won)

	w = newWaiting(t, 3)
	w.hears(1, Event{Kind: Discounted, Node: 0, Op: Acquire})
	w.hears(1, taken(1, "x", true))
	w.hears(1, taken(2, "x", true))
	w.stands(Open)
	w.hears(11, Event{Kind: Tick})
	w.stands(Lost)
	if !w.a.GaveWay() {
		t.Error("another attempt should not follow it")
	}
}

// An attempt that is cancelled gives up every place, with a tombstone where a request may still
// arrive.
func TestLeavingTheQueue(t *testing.T) {
	w := newWaiting(t, 5)
	w.hears(1, taken(0, "x", true))
	w.hears(1, Event{Kind: Unsent, Node: 1, Op: Acquire, RetryAfter: time.Hour})
	w.hears(1, Event{Kind: Unknown, Node: 2, Op: Acquire, RetryAfter: time.Millisecond})
	w.hears(1, granted(3, 7))
	w.hears(2, Event{Kind: Tick})
	w.sends("acquire 2, again, stand")
	w.hears(3, taken(2, "x", true)) // the first request may still arrive
	w.hears(4, Event{Kind: Cancel})
	w.stands(Lost)
	w.sends("release 0", "release 2, tomb, always", "release 3", "release 4, tomb, always")
	w.hears(5, granted(4, 7))
	w.hears(6, handed(0, 7, 0))
	w.sends()
}

// An attempt gives way only for a while to an owner that has a part of the nodes and never
// gets a majority.
func TestStrangerOnOneNode(t *testing.T) {
	w := newWaiting(t, 3)
	w.a = NewWait(w.a.Config, 3*time.Second, lineStart, true)
	w.hears(1, taken(0, "stranger", true))
	for n := 1; n < 3; n++ {
		w.hears(1, Event{Kind: Absent, Node: n, Op: Acquire, RetryAfter: time.Hour})
	}
	w.sends()
	next, ok := w.a.Next()
	if ms := int(next.Sub(lineStart).Milliseconds()); !ok || ms > 500 {
		t.Fatalf("it asks again after %d ms", ms)
	}
	w.hears(int(next.Sub(lineStart).Milliseconds()), Event{Kind: Tick})
	w.sends("acquire 1, again", "acquire 2, again")
	w.hears(300, granted(1, 7))
	w.hears(301, granted(2, 7))
	w.stands(Won)
}

// An attempt that knows such an owner from an earlier attempt does not give way again.
func TestStrangerIsKnown(t *testing.T) {
	w := newWaiting(t, 3)
	w.a = NewWait(w.a.Config, 3*time.Second, lineStart, true)
	stranger := taken(0, "stranger", true)
	stranger.HolderSince = at(-1000)
	w.hears(1, stranger)
	w.hears(1, Event{Kind: Absent, Node: 1, Op: Acquire, RetryAfter: time.Hour})
	w.sends()
	w.hears(2, Event{Kind: Absent, Node: 2, Op: Acquire, RetryAfter: time.Hour})
	w.sends("acquire 1, again", "acquire 2, again")
}

// A node that was free when the others granted the lock is asked for it, too.
func TestMajorityIsFilled(t *testing.T) {
	w := newWaiting(t, 3)
	for n := range 3 {
		w.hears(1, taken(n, "x", true))
	}
	w.hears(5, Event{Kind: PushFree, Node: 0})
	w.hears(5, Event{Kind: PushFree, Node: 1})
	w.sends("acquire 0, again", "acquire 1, again")
	w.hears(6, Event{Kind: PushFree, Node: 2})
	w.sends()
	w.hears(7, granted(0, 7))
	w.hears(8, granted(1, 7))
	w.stands(Won)
	w.sends("acquire 2, again")
	if !w.a.Repeated() {
		t.Error("it does not report a request that is on its way")
	}
	w.hears(9, Event{Kind: Absent, Node: 2, Op: Acquire})
	w.sends()
	w.hears(10, Event{Kind: PushFree, Node: 2}) // the lease may have been released
	w.sends()
}
