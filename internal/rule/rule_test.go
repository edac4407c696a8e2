package rule

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

const ms = time.Millisecond

// step is one step of a story about one lock, with the answer to it.
type step struct {
	at   time.Duration // since the story began
	do   action
	want Answer // except Slot, Slots and Spec
}

type action struct {
	name string
	run  func(r Record, now clock.Instant) (Record, Answer)
}

func ask(a Ask) action {
	return action{fmt.Sprintf("admit %+v", a), func(r Record, now clock.Instant) (Record, Answer) { return Admit(r, a, now) }}
}

func renew(owner string, ttl time.Duration) action {
	return action{fmt.Sprintf("renew %s %v", owner, ttl), func(r Record, now clock.Instant) (Record, Answer) { return Renew(r, owner, ttl, now) }}
}

func release(owner string) action { return bury(owner, 0) }

func bury(owner string, tombstone time.Duration) action {
	return action{fmt.Sprintf("release %s, tombstone %v", owner, tombstone), func(r Record, now clock.Instant) (Record, Answer) {
		return Release(r, End{Owner: owner, Tombstone: tombstone}, now)
	}}
}

func end(e End) action {
	return action{fmt.Sprintf("release %+v", e), func(r Record, now clock.Instant) (Record, Answer) { return Release(r, e, now) }}
}

func leave(owner string) action {
	return action{"leave " + owner, func(r Record, now clock.Instant) (Record, Answer) { return Leave(r, owner, now) }}
}

// play runs the steps and checks each answer. The story starts well after the clock's epoch,
// so that nothing depends on the epoch.
func play(t *testing.T, steps []step) Record {
	t.Helper()
	const start = clock.Instant(time.Hour)
	var r Record
	for i, s := range steps {
		before := deepCopy(r)
		next, got := s.do.run(r, start.Add(s.at))
		got.Slot, got.Slots, got.Spec = 0, "", Spec{} // see TestSlots and TestMismatchNamesTheKind
		if got != s.want {
			t.Fatalf("step %d, at %v, %s:\n got %+v\nwant %+v\nrecord %+v", i, s.at, s.do.name, got, s.want, r)
		}
		if !reflect.DeepEqual(r, before) {
			t.Fatalf("step %d, %s: changed the record it was given:\n got %+v\nwant %+v", i, s.do.name, r, before)
		}
		r = next
	}
	return r
}

// deepCopy also copies the elements beyond the end of each slice, to detect an
// append that writes into memory that another record uses.
func deepCopy(r Record) Record {
	r.Holds = slices.Clone(r.Holds[:cap(r.Holds)])[:len(r.Holds)]
	r.Queue = slices.Clone(r.Queue[:cap(r.Queue)])[:len(r.Queue)]
	r.Tombstones = slices.Clone(r.Tombstones[:cap(r.Tombstones)])[:len(r.Tombstones)]
	return r
}

func granted(token, count int, left time.Duration) Answer {
	return Answer{Verdict: Granted, Token: fenceToken(token), Count: int64(count), ExpiresIn: left}
}

func again(token, count int, left time.Duration) Answer {
	a := granted(token, count, left)
	a.Again = true
	return a
}

func renewed(token, count int, left time.Duration) Answer {
	a := granted(token, count, left)
	a.Verdict = Done
	return a
}

func released(token int) Answer { return Answer{Verdict: Done, Token: fenceToken(token)} }

// busy is the answer to an ask that a holder blocks. With behind, a waiter blocks it.
func busy(blocker string, left time.Duration, position int) Answer {
	return Answer{Verdict: Busy, Blocker: Blocker{Owner: blocker}, ExpiresIn: left, Position: position}
}

func behind(blocker string, left time.Duration, position int) Answer {
	a := busy(blocker, left, position)
	a.Blocker.Waiting = true
	return a
}

var (
	notHeld = Answer{Verdict: NotHeld}
	buried  = Answer{Verdict: Buried}
	left    = Answer{Verdict: Done} // a waiter left the queue
)

// Several attempts of one owner share its lease, and none ends what another one made.
func TestAttemptsOfOneOwner(t *testing.T) {
	m := func(attempt string) action {
		return ask(Ask{Spec: Mutex, Owner: "a", Attempt: attempt, TTL: 100 * ms})
	}
	waits := ask(Ask{Spec: Mutex, Owner: "a", Attempt: "5", TTL: 100 * ms, Fair: true, Wait: 100 * ms})
	play(t, []step{
		{0, m("1"), granted(1, 1, 100*ms)},
		{0, end(End{Owner: "a", Attempt: "2"}), notHeld},
		{0, end(End{Owner: "a", Attempt: "2", Undo: true}), notHeld},
		{0, m("1"), again(1, 1, 100*ms)}, // the same attempt
		{0, end(End{Owner: "a", Attempt: "1", Undo: true}), released(1)},

		{0, m("2"), granted(2, 1, 100*ms)},
		{0, m("3"), again(2, 1, 100*ms)},
		{0, end(End{Owner: "a", Attempt: "2", Undo: true}), notHeld},
		{0, end(End{Owner: "a", Attempt: "3", Undo: true}), notHeld},
		{0, end(End{Owner: "a", Attempt: "3"}), released(2)},

		// A tombstone is for one attempt.
		{0, end(End{Owner: "a", Attempt: "4", Tombstone: 100 * ms}), notHeld},
		{0, m("4"), buried},
		{0, ask(Ask{Spec: Mutex, Owner: "b", TTL: 10 * ms}), granted(3, 1, 10*ms)},
		{0, waits, busy("b", 10*ms, 1)},
		{0, release("b"), released(3)},
		{0, action{"advance", func(r Record, now clock.Instant) (Record, Answer) {
			r, _ = Advance(r, 0, now)
			return r, Answer{}
		}}, Answer{}},
		{0, end(End{Owner: "a", Attempt: "4", Undo: true}), notHeld},
		{0, end(End{Owner: "a", Attempt: "5", Undo: true}), released(4)},
	})
}

func TestMutex(t *testing.T) {
	m := func(owner string, ttl time.Duration) action {
		return ask(Ask{Spec: Mutex, Owner: owner, TTL: ttl})
	}
	r := play(t, []step{
		{0, release("a"), notHeld},
		{0, renew("a", 100*ms), notHeld},
		{0, m("a", 100*ms), granted(1, 1, 100*ms)},
		{10 * ms, m("b", 100*ms), busy("a", 90*ms, 0)},
		// Not the holder.
		{10 * ms, release("b"), notHeld},
		{10 * ms, renew("b", 100*ms), notHeld},
		// The same request again: the token stays, the expiry never shrinks.
		{20 * ms, m("a", 10*ms), again(1, 1, 80*ms)},
		{20 * ms, m("a", 100*ms), again(1, 1, 100*ms)},
		{30 * ms, renew("a", 10*ms), renewed(1, 1, 90*ms)},
		{30 * ms, renew("a", 200*ms), renewed(1, 1, 200*ms)},
		{230*ms - 1, m("b", 100*ms), busy("a", 1, 0)},
		{230*ms - 1, release("a"), released(1)},
		{230*ms - 1, release("a"), notHeld},
		{230*ms - 1, renew("a", 100*ms), notHeld},
		{230 * ms, m("b", 100*ms), granted(2, 1, 100*ms)},
		{230 * ms, m("a", 100*ms), busy("b", 100*ms, 0)},
	})
	if r.Idle() {
		t.Errorf("a held lock is idle: %+v", r)
	}
	// A free lock keeps its last token, and nothing else of its use.
	if r, _ = Release(r, End{Owner: "b"}, clock.Instant(time.Hour)); !reflect.DeepEqual(r, Record{Spec: Mutex, Token: 2}) {
		t.Errorf("after the release: %#v, want only the kind and the token 2", r)
	}
	play(t, []step{{0, ask(Ask{Spec: Mutex, Owner: "a", Meta: "says a", TTL: ms}), granted(1, 1, ms)}, {0, m("b", ms), Answer{
		Verdict: Busy, ExpiresIn: ms, Blocker: Blocker{Owner: "a", Meta: "says a"},
	}}})
}

func TestExpiry(t *testing.T) {
	m := func(owner string, ttl time.Duration) action {
		return ask(Ask{Spec: Mutex, Owner: owner, TTL: ttl})
	}
	play(t, []step{
		{0, m("a", 100*ms), granted(1, 1, 100*ms)},
		{100*ms - 1, m("b", 100*ms), busy("a", 1, 0)},
		{100 * ms, m("b", 100*ms), granted(2, 1, 100*ms)},
		// The owner whose lease expired has none now.
		{100 * ms, renew("a", 100*ms), notHeld},
		{100 * ms, release("a"), notHeld},
		// A renewal at the last moment counts. One a moment later does not, even if no other
		// owner has asked meanwhile.
		{200*ms - 1, renew("b", 100*ms), renewed(2, 1, 100*ms)},
		{300*ms - 1, renew("b", 100*ms), notHeld},
		// The same owner after its expiry is a new grant.
		{300 * ms, m("b", 100*ms), granted(3, 1, 100*ms)},
		// Centuries do not wrap round.
		{300 * ms, renew("b", math.MaxInt64), renewed(3, 1, math.MaxInt64-clock.Instant(time.Hour+300*ms).Sub(0))},
		{301 * ms, m("a", 100*ms), busy("b", math.MaxInt64-clock.Instant(time.Hour+301*ms).Sub(0), 0)},
	})
}

func TestExpire(t *testing.T) {
	r := Record{
		Spec:       Semaphore(9),
		Token:      7,
		Holds:      []Hold{{Owner: "a", Expiry: 10}, {Owner: "b", Expiry: 30}, {Owner: "c", Expiry: 20}},
		Queue:      []Place{{Owner: "d", Expiry: 20}, {Owner: "e", Expiry: 10}, {Owner: "f", Expiry: 30}},
		Tombstones: []Tombstone{{Owner: "g", Expiry: 30}, {Owner: "h", Expiry: 20}, {Owner: "i", Expiry: 10}},
	}
	before := deepCopy(r)
	for now, want := range map[clock.Instant]string{
		9: "a b c | d e f | g h i", 10: "b c | d f | g h", 19: "b c | d f | g h", 20: "b | f | g", 29: "b | f | g", 30: " |  | ",
	} {
		e := Expire(r, now)
		if got := owners(e); got != want {
			t.Errorf("at %d: %q, want %q", now, got, want)
		}
		if e.Token != 7 || e.Spec != Semaphore(9) {
			t.Errorf("at %d: token %v and kind %+v, want both kept", now, e.Token, e.Spec)
		}
		if again := Expire(e, now); !reflect.DeepEqual(again, e) {
			t.Errorf("at %d: expiring twice gave %+v, once %+v", now, again, e)
		}
		if e.Idle() != (now == 30) {
			t.Errorf("at %d: idle %v, want %v", now, e.Idle(), now == 30)
		}
	}
	if !reflect.DeepEqual(r, before) {
		t.Errorf("expire changed the record it was given: %+v", r)
	}
	if e := Expire(r, 30); e.Holds != nil || e.Queue != nil || e.Tombstones != nil {
		t.Errorf("after everything expired: %#v, want nil slices", e)
	}
}

func TestSemaphore(t *testing.T) {
	s := func(owner string, weight int64, ttl time.Duration) action {
		return ask(Ask{Spec: Semaphore(5), Owner: owner, Weight: weight, TTL: ttl})
	}
	play(t, []step{
		{0, s("a", 2, 100*ms), granted(1, 1, 100*ms)},
		{0, s("b", 0, 60*ms), granted(2, 1, 60*ms)}, // weight 1
		{0, s("c", 2, 80*ms), granted(3, 1, 80*ms)},
		// When full, the blocker is the holder that expires first, not the first holder.
		{10 * ms, s("d", 1, 100*ms), busy("b", 50*ms, 0)},
		{10 * ms, renew("b", 300*ms), renewed(2, 1, 300*ms)},
		{10 * ms, s("d", 1, 100*ms), busy("c", 70*ms, 0)},
		{20 * ms, release("c"), released(3)},
		// Two are free.
		{20 * ms, s("d", 3, 100*ms), busy("a", 80*ms, 0)},
		{20 * ms, s("d", 2, 100*ms), granted(4, 1, 100*ms)},
		// Expiry frees what it held.
		{100 * ms, s("e", 2, 100*ms), granted(5, 1, 100*ms)},
		// A repeat is not another permit, and a lease does not grow.
		{100 * ms, s("e", 2, 100*ms), again(5, 1, 100*ms)},
		{100 * ms, s("e", 1, 100*ms), again(5, 1, 100*ms)},
		{100 * ms, s("e", 3, 100*ms), Answer{Verdict: Mismatch, Blocker: Blocker{Owner: "e"}, ExpiresIn: 100 * ms}},
		// An ask that can never fit is not put in the queue.
		{100 * ms, s("f", 6, 100*ms), Answer{Verdict: Mismatch}},
		{100 * ms, s("f", -1, 100*ms), Answer{Verdict: Mismatch}},
	})
	// The largest weights do not overflow, nor do their sums in the queue.
	big := func(owner string, weight int64) action {
		return ask(Ask{Spec: Semaphore(math.MaxInt64), Owner: owner, Weight: weight, TTL: 100 * ms, Wait: 100 * ms, Fair: true})
	}
	play(t, []step{
		{0, big("a", math.MaxInt64-1), granted(1, 1, 100*ms)},
		{0, big("b", math.MaxInt64), busy("a", 100*ms, 1)},
		{0, big("c", math.MaxInt64), busy("a", 100*ms, 2)},
		{0, big("d", 1), behind("b", 100*ms, 3)},
		{0, release("a"), released(1)},
		{0, big("d", 1), behind("b", 100*ms, 3)},
		{0, big("b", math.MaxInt64), granted(2, 1, 100*ms)},
	})
}

func TestReadWrite(t *testing.T) {
	read := func(owner string, floor int) action {
		return ask(Ask{Spec: ReadWrite, Owner: owner, Weight: 1, TTL: 100 * ms, Floor: fenceToken(floor)})
	}
	write := func(owner string, floor int) action {
		return ask(Ask{Spec: ReadWrite, Owner: owner, Weight: ReadWriteLimit, TTL: 100 * ms, Floor: fenceToken(floor)})
	}
	play(t, []step{
		// The first reader of a new lock has a token too.
		{0, read("r1", 0), granted(1, 1, 100*ms)},
		{10 * ms, read("r2", 0), granted(1, 1, 100*ms)},
		{10 * ms, write("w1", 0), busy("r1", 90*ms, 0)},
		// A reader does not become the writer while it holds the lock.
		{10 * ms, write("r1", 0), Answer{Verdict: Mismatch, Blocker: Blocker{Owner: "r1"}, ExpiresIn: 90 * ms}},
		{20 * ms, release("r1"), released(1)},
		{20 * ms, write("w1", 0), busy("r2", 90*ms, 0)},
		{20 * ms, release("r2"), released(1)},
		{20 * ms, write("w1", 0), granted(2, 1, 100*ms)},
		{20 * ms, read("r3", 0), busy("w1", 100*ms, 0)},
		{20 * ms, write("w2", 0), busy("w1", 100*ms, 0)},
		{20 * ms, release("w1"), released(2)},
		// The first reader after a writer has a larger token, so that a resource
		// refuses the writer if it was paused. Readers that join it share its
		// token, even while the floor rises, and when the first one has left.
		{20 * ms, read("r4", 0), granted(3, 1, 100*ms)},
		{20 * ms, read("r5", 1000), granted(3, 1, 100*ms)},
		{20 * ms, release("r4"), released(3)},
		{20 * ms, read("r6", 0), granted(3, 1, 100*ms)},
		{20 * ms, release("r5"), released(3)},
		{20 * ms, release("r6"), released(3)},
		{20 * ms, write("w2", 0), granted(4, 1, 100*ms)},
		// The same if the writer's lease has expired.
		{120 * ms, read("r7", 0), granted(5, 1, 100*ms)},
		// A reader that comes after the last one has left gets a token of its own.
		{120 * ms, release("r7"), released(5)},
		{120 * ms, read("r8", 10), granted(10, 1, 100*ms)},
	})
	// A store that forgot the lock: no reader goes below the floor.
	play(t, []step{{0, read("r1", 1000), granted(1000, 1, 100*ms)}})
	// Holders of a semaphore do not share a token.
	play(t, []step{
		{0, ask(Ask{Spec: Semaphore(2), Owner: "a", TTL: ms}), granted(1, 1, ms)},
		{0, ask(Ask{Spec: Semaphore(2), Owner: "b", TTL: ms}), granted(2, 1, ms)},
	})
}

func TestReentry(t *testing.T) {
	m := func(owner string, ttl time.Duration) action {
		return ask(Ask{Spec: Mutex, Owner: owner, TTL: ttl, Reenter: true})
	}
	play(t, []step{
		{0, m("a", 100*ms), granted(1, 1, 100*ms)},
		{10 * ms, m("a", 100*ms), again(1, 2, 100*ms)},
		{20 * ms, m("a", 10*ms), again(1, 3, 90*ms)},
		{20 * ms, renew("a", 200*ms), renewed(1, 3, 200*ms)},
		// A repeat that is not meant as a re-entry does not count.
		{20 * ms, ask(Ask{Spec: Mutex, Owner: "a", TTL: ms}), again(1, 3, 200*ms)},
		{20 * ms, m("b", 100*ms), busy("a", 200*ms, 0)},
		{20 * ms, release("a"), renewed(1, 2, 200*ms)},
		{30 * ms, release("a"), renewed(1, 1, 190*ms)},
		{30 * ms, m("b", 100*ms), busy("a", 190*ms, 0)},
		{30 * ms, release("a"), released(1)},
		{30 * ms, release("a"), notHeld},
		{30 * ms, m("b", 100*ms), granted(2, 1, 100*ms)},
		// Expiry ends all entries at once.
		{30 * ms, m("b", 100*ms), again(2, 2, 100*ms)},
		{130 * ms, m("a", 100*ms), granted(3, 1, 100*ms)},
		{130 * ms, release("b"), notHeld},
	})
	// The writer may read what it writes.
	rw := func(weight int64) action {
		return ask(Ask{Spec: ReadWrite, Owner: "w", Weight: weight, TTL: 100 * ms, Reenter: true})
	}
	play(t, []step{
		{0, rw(ReadWriteLimit), granted(1, 1, 100*ms)},
		{0, rw(1), again(1, 2, 100*ms)},
		{0, release("w"), renewed(1, 1, 100*ms)},
		{0, ask(Ask{Spec: ReadWrite, Owner: "r", TTL: ms}), busy("w", 100*ms, 0)},
	})
}

func TestKindMismatch(t *testing.T) {
	use := func(spec Spec, owner string) action {
		return ask(Ask{Spec: spec, Owner: owner, TTL: 100 * ms, Wait: 50 * ms})
	}
	refused := func(blocker string, left time.Duration) Answer {
		return Answer{Verdict: Mismatch, Blocker: Blocker{Owner: blocker}, ExpiresIn: left}
	}
	waiter := refused("a", 100*ms)
	waiter.Position = 1
	waits := refused("b", 50*ms)
	waits.Blocker.Waiting = true
	r := play(t, []step{
		{0, use(Mutex, "a"), granted(1, 1, 100*ms)},
		{0, use(Semaphore(2), "b"), refused("a", 100*ms)},
		{0, use(ReadWrite, "b"), refused("a", 100*ms)},
		{0, use(Spec{Limit: 1, Shared: true}, "b"), refused("a", 100*ms)},
		{0, use(Semaphore(2), "a"), refused("a", 100*ms)}, // its own holder is refused too
		{0, use(Mutex, "b"), busy("a", 100*ms, 1)},
		{0, use(Semaphore(2), "b"), waiter}, // its place is for a mutex, and stays
		{0, release("a"), released(1)},
		{0, use(Semaphore(2), "c"), waits}, // b waits for a mutex
		{50 * ms, use(Semaphore(2), "c"), granted(2, 1, 100*ms)},
		{50 * ms, use(Mutex, "a"), refused("c", 100*ms)},
		// A lock that is not in use can become any kind.
		{150 * ms, use(ReadWrite, "d"), granted(3, 1, 100*ms)},
		{150 * ms, release("d"), released(3)},
		{150 * ms, use(Mutex, "e"), granted(4, 1, 100*ms)},
		{150 * ms, use(Spec{}, "f"), refused("e", 100*ms)},
		{150 * ms, release("e"), released(4)},
		{150 * ms, use(Spec{}, "f"), Answer{Verdict: Mismatch}}, // the zero kind is none
	})
	if r.Spec != Mutex {
		t.Errorf("the kind is %+v after a refused ask, want that of a mutex", r.Spec)
	}
}

func TestQueue(t *testing.T) {
	m := func(owner string, wait time.Duration) action {
		return ask(Ask{Spec: Mutex, Owner: owner, TTL: 500 * ms, Wait: wait, Fair: true})
	}
	play(t, []step{
		{0, m("a", 100*ms), granted(1, 1, 500*ms)}, // a free lock leaves no place
		{0, m("b", 100*ms), busy("a", 500*ms, 1)},
		{10 * ms, m("c", 100*ms), busy("a", 490*ms, 2)},
		{20 * ms, m("d", 100*ms), busy("a", 480*ms, 3)},
		{20 * ms, m("e", 0), busy("a", 480*ms, 0)}, // asked without leaving a place
		// Refreshed, a place stays where it is, and its time never shrinks.
		{50 * ms, m("b", 100*ms), busy("a", 450*ms, 1)},
		{60 * ms, m("d", ms), busy("a", 440*ms, 3)},
		{61 * ms, m("d", 0), busy("a", 439*ms, 3)},
		// c does not refresh its place and loses it at 110; d moves up.
		{110 * ms, m("d", 100*ms), busy("a", 390*ms, 2)},
		// An owner that leaves is gone at once, and rejoins at the end.
		{110 * ms, leave("b"), left},
		{110 * ms, leave("b"), notHeld},
		{110 * ms, m("b", 100*ms), busy("a", 390*ms, 2)},
		{110 * ms, m("d", 0), busy("a", 390*ms, 1)},
		// The place becomes the lease.
		{120 * ms, release("a"), released(1)},
		{120 * ms, m("d", 100*ms), granted(2, 1, 500*ms)},
		{120 * ms, m("b", 100*ms), busy("d", 500*ms, 1)},
		// A holder that asks again gets no place in the queue for its own lock.
		{120 * ms, m("d", 100*ms), again(2, 1, 500*ms)},
		{120 * ms, m("g", 100*ms), busy("d", 500*ms, 2)},
		// If no waiter is alive, the next owner that asks gets the lock.
		{120 * ms, release("d"), released(2)},
		{220 * ms, m("f", 100*ms), granted(3, 1, 500*ms)},
		// A release by a waiter removes it from the queue.
		{220 * ms, m("b", 100*ms), busy("f", 500*ms, 1)},
		{220 * ms, m("c", 100*ms), busy("f", 500*ms, 2)},
		{220 * ms, release("b"), notHeld},
		{220 * ms, m("c", 100*ms), busy("f", 500*ms, 1)},
		// An owner that leaves after it was handed the lock releases it entirely.
		{220 * ms, ask(Ask{Spec: Mutex, Owner: "f", TTL: ms, Reenter: true}), again(3, 2, 500*ms)},
		{220 * ms, leave("f"), released(3)},
		{220 * ms, leave("f"), notHeld},
		{220 * ms, renew("f", 100*ms), notHeld},
		{220 * ms, m("c", 100*ms), granted(4, 1, 500*ms)},
	})
}

func TestFair(t *testing.T) {
	queue := func(owner string) action {
		return ask(Ask{Spec: Mutex, Owner: owner, TTL: 500 * ms, Wait: 100 * ms, Fair: true})
	}
	barge := func(owner string) action {
		return ask(Ask{Spec: Mutex, Owner: owner, TTL: 500 * ms, Wait: 100 * ms})
	}
	play(t, []step{
		{0, queue("a"), granted(1, 1, 500*ms)},
		{0, queue("b"), busy("a", 500*ms, 1)},
		{0, queue("c"), busy("a", 500*ms, 2)},
		{0, release("a"), released(1)},
		// The lock is free, but only for the head of the queue, which blocks the others.
		{10 * ms, queue("c"), behind("b", 90*ms, 2)},
		{10 * ms, queue("d"), behind("b", 90*ms, 3)},
		{10 * ms, ask(Ask{Spec: Mutex, Owner: "b", TTL: ms, Wait: 200 * ms, Fair: true, Weight: 2}), Answer{Verdict: Mismatch}},
		{10 * ms, ask(Ask{Spec: Mutex, Owner: "e", TTL: ms, Fair: true}), behind("b", 90*ms, 0)},
		{10 * ms, queue("b"), granted(2, 1, 500*ms)},
		{10 * ms, release("b"), released(2)},
		// An owner that barges takes what is free, and has no place afterwards.
		{20 * ms, barge("d"), granted(3, 1, 500*ms)},
		{20 * ms, barge("e"), busy("d", 500*ms, 2)},
		{20 * ms, release("d"), released(3)},
		// A dead waiter blocks others only until its place expires.
		{110*ms - 1, queue("f"), behind("c", 1, 3)},
		{110 * ms, queue("e"), granted(4, 1, 500*ms)},
	})

	// Of several waiters ahead, the answer names the one whose place expires first.
	play(t, []step{
		{0, queue("a"), granted(1, 1, 500*ms)},
		{0, ask(Ask{Spec: Mutex, Owner: "b", TTL: ms, Wait: 300 * ms, Fair: true}), busy("a", 500*ms, 1)},
		{0, ask(Ask{Spec: Mutex, Owner: "c", TTL: ms, Wait: 200 * ms, Fair: true}), busy("a", 500*ms, 2)},
		{0, release("a"), released(1)},
		{0, queue("d"), behind("c", 200*ms, 3)},
	})

	// As many waiters from the head get permits of a semaphore as fit together. Small asks do
	// not starve a large one.
	s := func(owner string, weight int64) action {
		return ask(Ask{Spec: Semaphore(4), Owner: owner, Weight: weight, TTL: 500 * ms, Wait: 400 * ms, Fair: true})
	}
	play(t, []step{
		{0, s("a", 2), granted(1, 1, 500*ms)},
		{0, s("b", 2), granted(2, 1, 500*ms)},
		{0, s("large", 3), busy("a", 500*ms, 1)},
		{1 * ms, s("c", 1), busy("a", 499*ms, 2)},
		{1 * ms, s("d", 1), busy("a", 499*ms, 3)},
		{1 * ms, release("a"), released(1)},
		{1 * ms, s("c", 1), behind("large", 399*ms, 2)}, // there is room, but large comes first
		{2 * ms, release("b"), released(2)},
		{2 * ms, s("d", 1), behind("large", 398*ms, 3)}, // large and c fill it
		{2 * ms, s("c", 1), granted(3, 1, 500*ms)},      // large still fits beside it
		{2 * ms, s("d", 1), behind("large", 398*ms, 2)},
		{2 * ms, s("large", 3), granted(4, 1, 500*ms)},
		{2 * ms, s("d", 1), busy("c", 500*ms, 1)},
	})

	// Readers behind a waiting writer wait, so that the writer gets the lock. Readers ahead of
	// it get the lock together.
	rw := func(owner string, weight int64) action {
		return ask(Ask{Spec: ReadWrite, Owner: owner, Weight: weight, TTL: 500 * ms, Wait: 400 * ms, Fair: true})
	}
	play(t, []step{
		{0, rw("r1", 1), granted(1, 1, 500*ms)},
		{0, rw("w1", ReadWriteLimit), busy("r1", 500*ms, 1)},
		{1 * ms, rw("r2", 1), behind("w1", 399*ms, 2)},
		{1 * ms, rw("r3", 1), behind("w1", 399*ms, 3)},
		{1 * ms, rw("w2", ReadWriteLimit), busy("r1", 499*ms, 4)},
		{2 * ms, release("r1"), released(1)},
		{2 * ms, rw("r2", 1), behind("w1", 398*ms, 2)},
		{2 * ms, rw("w1", ReadWriteLimit), granted(2, 1, 500*ms)},
		{3 * ms, release("w1"), released(2)},
		{3 * ms, rw("r3", 1), granted(3, 1, 500*ms)}, // r2 can come in, too
		{3 * ms, rw("r2", 1), granted(3, 1, 500*ms)},
		{3 * ms, rw("r4", 1), behind("w2", 398*ms, 2)},
	})
}

func TestTombstones(t *testing.T) {
	m := func(owner string) action {
		return ask(Ask{Spec: Mutex, Owner: owner, TTL: 100 * ms, Wait: 100 * ms, Fair: true})
	}
	r := play(t, []step{
		{0, bury("a", 100*ms), notHeld},
		{50 * ms, m("a"), buried},
		{50 * ms, leave("a"), notHeld},                                                // and it has no place
		{50 * ms, m("b"), granted(1, 1, 100*ms)},                                      // others are not concerned
		{50 * ms, m("a"), buried},                                                     // busy or not
		{60 * ms, bury("a", ms), notHeld},                                             // never shorter
		{100*ms - 1, m("a"), buried},                                                  //
		{100 * ms, m("a"), busy("b", 50*ms, 1)},                                       // over
		{100 * ms, bury("a", 100*ms), notHeld},                                        // the place goes with the owner
		{100 * ms, m("c"), busy("b", 50*ms, 1)},                                       //
		{110 * ms, bury("a", 200*ms), notHeld},                                        // longer
		{110 * ms, bury("b", 200*ms), released(1)},                                    // a lease that is there is just released
		{110 * ms, m("c"), granted(2, 1, 100*ms)},                                     //
		{210 * ms, m("b"), granted(3, 1, 100*ms)},                                     // so it is not buried
		{310*ms - 1, m("a"), buried},                                                  //
		{310 * ms, bury("b", 100*ms), notHeld},                                        // expired is not there
		{310 * ms, m("b"), buried},                                                    //
		{310 * ms, m("a"), granted(4, 1, 100*ms)},                                     //
		{320 * ms, release("a"), released(4)},                                         //
		{320 * ms, release("z"), notHeld},                                             // asked without a tombstone
		{320 * ms, m("z"), granted(5, 1, 100*ms)},                                     //
		{330 * ms, release("z"), released(5)},                                         //
		{330 * ms, renew("b", 100*ms), notHeld},                                       //
		{330 * ms, ask(Ask{Spec: ReadWrite, Owner: "r", TTL: ms}), granted(6, 1, ms)}, // a tombstone is nobody
		{331 * ms, bury("y", 1), notHeld},
	})
	if r.Idle() {
		t.Error("a record with a tombstone is idle, want not: it must not be forgotten")
	}
	if r = Expire(r, clock.Instant(2*time.Hour)); !r.Idle() || r.Token != 6 {
		t.Errorf("after everything expired: %+v, want it idle, with its last token", r)
	}
}

func TestTokens(t *testing.T) {
	m := func(owner string, floor int) action {
		return ask(Ask{Spec: Mutex, Owner: owner, TTL: 100 * ms, Reenter: true, Floor: fenceToken(floor)})
	}
	play(t, []step{
		{0, m("a", 1000), granted(1000, 1, 100*ms)},
		// Only a grant changes the token, whatever the floor.
		{0, m("a", 2000), again(1000, 2, 100*ms)},
		{0, renew("a", 100*ms), renewed(1000, 2, 100*ms)},
		{0, release("a"), renewed(1000, 1, 100*ms)},
		{0, m("b", 5000), busy("a", 100*ms, 0)},
		{0, release("a"), released(1000)},
		{0, m("b", 1000), granted(1001, 1, 100*ms)}, // a floor that stood still
		{0, release("b"), released(1001)},
		{0, m("c", 5), granted(1002, 1, 100*ms)}, // or went back
		{100 * ms, m("d", 2000), granted(2000, 1, 100*ms)},
	})
}

func TestVerdictNames(t *testing.T) {
	for v := Granted; v <= NotHeld; v++ {
		if s := v.String(); s == "" || s == "no verdict" {
			t.Errorf("verdict %d has no name", uint8(v))
		}
	}
	if s := (NotHeld + 1).String(); s != "verdict 7" {
		t.Errorf("an unknown verdict is called %q, want \"verdict 7\"", s)
	}
}
