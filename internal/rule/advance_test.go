package rule

import (
	"reflect"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// advance returns the action Advance, which must return these turns.
func advance(t *testing.T, floor int, want ...Turn) action {
	return action{"advance", func(r Record, now clock.Instant) (Record, Answer) {
		t.Helper()
		next, got := Advance(r, fenceToken(floor), now)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("at %v: turns %+v, want %+v\nrecord %+v", now, got, want, r)
		}
		if again, more := Advance(next, fenceToken(floor), now); !notified(want) && (len(more) > 0 || !reflect.DeepEqual(again, next)) {
			t.Errorf("advanced twice: turns %+v, record %+v, want no change", more, again)
		}
		return next, Answer{}
	}}
}

// notified reports whether the last turn notifies a barging waiter.
func notified(turns []Turn) bool { return len(turns) > 0 && turns[len(turns)-1].Token == 0 }

func handed(owner string, token int, left time.Duration) Turn {
	return Turn{Owner: owner, Token: fenceToken(token), ExpiresIn: left}
}

func TestAdvance(t *testing.T) {
	m := func(owner string, wait time.Duration) action {
		return ask(Ask{Spec: Mutex, Owner: owner, Meta: "says " + owner, TTL: 500 * ms, Wait: wait, Fair: true})
	}
	says := func(a Answer) Answer {
		a.Blocker.Meta = "says " + a.Blocker.Owner
		return a
	}
	r := play(t, []step{
		{0, advance(t, 0), Answer{}}, // an unused lock
		{0, m("a", 100*ms), granted(1, 1, 500*ms)},
		{0, m("b", 200*ms), says(busy("a", 500*ms, 1))},
		{0, m("c", 50*ms), says(busy("a", 500*ms, 2))},
		{0, m("d", 300*ms), says(busy("a", 500*ms, 3))},
		{0, m("e", 900*ms), says(busy("a", 500*ms, 4))},
		{10 * ms, advance(t, 0), Answer{}}, // held
		// The first in the queue gets the lock, for as long as its place would have lasted.
		{20 * ms, release("a"), released(1)},
		{20 * ms, advance(t, 0, handed("b", 2, 180*ms)), Answer{}},
		{20 * ms, m("x", 0), says(busy("b", 180*ms, 0))},
		// Its next ask confirms the lease and extends it.
		{30 * ms, m("b", 200*ms), again(2, 1, 500*ms)},
		// A place that has expired is passed over.
		{60 * ms, release("b"), released(2)},
		{60 * ms, advance(t, 0, handed("d", 3, 240*ms)), Answer{}},
		{60 * ms, m("c", 0), says(busy("d", 240*ms, 0))},
		// An owner that leaves after it was handed the lock passes it to the next.
		{70 * ms, leave("d"), released(3)},
		{70 * ms, advance(t, 40, handed("e", 40, 830*ms)), Answer{}}, // not below the floor
		{70 * ms, m("f", 900*ms), says(busy("e", 830*ms, 1))},
		{70 * ms, m("g", 900*ms), says(busy("e", 830*ms, 2))},
		{70 * ms, m("h", 900*ms), says(busy("e", 830*ms, 3))},
		// Any step hands on a lease that has expired.
		{900 * ms, advance(t, 0, handed("f", 41, 70*ms)), Answer{}},
		{900 * ms, release("g"), notHeld}, // g leaves the queue
		{910 * ms, bury("h", 900*ms), notHeld},
		{910 * ms, release("f"), released(41)},
		{910 * ms, advance(t, 0), Answer{}},
		{910 * ms, m("i", 0), granted(42, 1, 500*ms)},
	})
	if r.Holds[0].Meta != "says i" {
		t.Errorf("the holder has Meta %q, want \"says i\": %+v", r.Holds[0].Meta, r)
	}
}

func TestAdvanceKeepsMeta(t *testing.T) {
	r := play(t, []step{
		{0, ask(Ask{Spec: Semaphore(3), Owner: "a", Weight: 3, TTL: 100 * ms}), granted(1, 1, 100*ms)},
		{0, ask(Ask{Spec: Semaphore(3), Owner: "b", Meta: "says b", Weight: 2, TTL: 100 * ms, Wait: 90 * ms, Fair: true}), busy("a", 100*ms, 1)},
		{0, leave("a"), released(1)},
		{0, advance(t, 0, handed("b", 2, 90*ms)), Answer{}},
	})
	want := Hold{Owner: "b", Meta: "says b", Weight: 2, Count: 1, Token: 2, Expiry: clock.Instant(time.Hour + 90*ms), Granted: clock.Instant(time.Hour)}
	if len(r.Holds) != 1 || r.Holds[0] != want {
		t.Errorf("handed on as %+v, want %+v", r.Holds, want)
	}
}

func TestAdvanceSeveral(t *testing.T) {
	// As many waiters from the head get permits of a semaphore as fit together.
	s := func(owner string, weight int64) action {
		return ask(Ask{Spec: Semaphore(4), Owner: owner, Weight: weight, TTL: 500 * ms, Wait: 400 * ms, Fair: true})
	}
	play(t, []step{
		{0, s("a", 3), granted(1, 1, 500*ms)},
		{0, s("b", 1), granted(2, 1, 500*ms)},
		{0, s("c", 2), busy("a", 500*ms, 1)},
		{0, s("d", 1), busy("a", 500*ms, 2)},
		{0, s("large", 3), busy("a", 500*ms, 3)},
		{0, s("e", 1), busy("a", 500*ms, 4)},
		{1 * ms, release("b"), released(2)},
		{1 * ms, advance(t, 0), Answer{}}, // one is free, the head needs two
		{2 * ms, release("a"), released(1)},
		{2 * ms, advance(t, 0, handed("c", 3, 398*ms), handed("d", 4, 398*ms)), Answer{}},
		{3 * ms, release("c"), released(3)},
		{3 * ms, advance(t, 0, handed("large", 5, 397*ms)), Answer{}},
		{4 * ms, release("d"), released(4)},
		{4 * ms, advance(t, 90, handed("e", 90, 396*ms)), Answer{}},
	})
	// Readers up to the first writer get the lock together, and share a token that is larger
	// than all tokens of the writer before them.
	rw := func(owner string, weight int64) action {
		return ask(Ask{Spec: ReadWrite, Owner: owner, Weight: weight, TTL: 500 * ms, Wait: 400 * ms, Fair: true})
	}
	play(t, []step{
		{0, rw("w1", ReadWriteLimit), granted(1, 1, 500*ms)},
		{0, rw("r1", 1), busy("w1", 500*ms, 1)},
		{0, rw("r2", 1), busy("w1", 500*ms, 2)},
		{0, rw("w2", ReadWriteLimit), busy("w1", 500*ms, 3)},
		{0, rw("r3", 1), busy("w1", 500*ms, 4)},
		{1 * ms, release("w1"), released(1)},
		{1 * ms, advance(t, 70, handed("r1", 70, 399*ms), handed("r2", 70, 399*ms)), Answer{}},
		{2 * ms, release("r1"), released(70)},
		{2 * ms, advance(t, 0), Answer{}},
		{2 * ms, release("r2"), released(70)},
		{2 * ms, advance(t, 0, handed("w2", 71, 398*ms)), Answer{}},
		{3 * ms, release("w2"), released(71)},
		{3 * ms, advance(t, 0, handed("r3", 72, 397*ms)), Answer{}},
	})
}

// A barging waiter is notified and has to ask for the lock, which stays free until the next
// step.
func TestAdvanceNotifiesBargingWaiters(t *testing.T) {
	queue := func(owner string) action {
		return ask(Ask{Spec: Mutex, Owner: owner, TTL: 500 * ms, Wait: 100 * ms, Fair: true})
	}
	barge := func(owner string) action {
		return ask(Ask{Spec: Mutex, Owner: owner, TTL: 500 * ms, Wait: 100 * ms})
	}
	play(t, []step{
		{0, queue("a"), granted(1, 1, 500*ms)},
		{0, barge("b"), busy("a", 500*ms, 1)},
		{0, barge("c"), busy("a", 500*ms, 2)},
		{0, queue("d"), busy("a", 500*ms, 3)},
		{0, queue("e"), busy("a", 500*ms, 4)},
		{1 * ms, release("a"), released(1)},
		{1 * ms, advance(t, 0, Turn{Owner: "b"}), Answer{}},
		{1 * ms, barge("b"), granted(2, 1, 500*ms)},
		{2 * ms, release("b"), released(2)},
		{2 * ms, advance(t, 0, Turn{Owner: "c"}), Answer{}},
		{2 * ms, leave("c"), notHeld}, // c does not ask any more
		{2 * ms, advance(t, 0, handed("d", 3, 98*ms)), Answer{}},
		{2 * ms, barge("c"), busy("d", 98*ms, 2)}, // too late
		// A place has the options of the last ask of its owner.
		{3 * ms, barge("e"), busy("d", 97*ms, 1)},
		{3 * ms, release("d"), released(3)},
		{3 * ms, advance(t, 0, Turn{Owner: "e"}), Answer{}},
	})
	// Permits that are left for a barging waiter are not handed to the waiters behind it.
	s := func(owner string, weight int64, fair bool) action {
		return ask(Ask{Spec: Semaphore(3), Owner: owner, Weight: weight, TTL: 500 * ms, Wait: 100 * ms, Fair: fair})
	}
	play(t, []step{
		{0, s("a", 3, true), granted(1, 1, 500*ms)},
		{0, s("b", 2, false), busy("a", 500*ms, 1)},
		{0, s("c", 1, true), busy("a", 500*ms, 2)},
		{0, s("d", 1, true), busy("a", 500*ms, 3)},
		{1 * ms, release("a"), released(1)},
		{1 * ms, action{"advance", func(r Record, now clock.Instant) (Record, Answer) {
			r, turns := Advance(r, 0, now)
			if want := []Turn{{Owner: "b"}, handed("c", 2, 99*ms)}; !reflect.DeepEqual(turns, want) {
				t.Errorf("turns %+v, want %+v", turns, want)
			}
			return r, Answer{}
		}}, Answer{}},
		{1 * ms, s("b", 2, false), granted(3, 1, 500*ms)},
	})
}
