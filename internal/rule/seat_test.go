package rule

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// numbered is a lock at one of several nodes.
type numbered struct {
	t *testing.T
	Record
	now clock.Instant
}

func (n *numbered) ask(owner string, permits int64, slots Slots, want Verdict) Answer {
	n.t.Helper()
	var ans Answer
	n.Record, ans = Admit(n.Record, Ask{Spec: Semaphore(permits), Owner: owner, TTL: time.Second, Numbered: true, Slots: slots, Exact: slots != "", Fair: true}, n.now)
	if ans.Verdict != want {
		n.t.Errorf("%s asks for one of %d permits, slots %q: %+v, want %v", owner, permits, slots, ans, want)
	}
	return ans
}

func (n *numbered) seat(who string, from, to int64, want Verdict) {
	n.t.Helper()
	var ans Answer
	if n.Record, ans = TakeSeat(n.Record, seatOf(who, from, to), 3*time.Second, n.now); ans.Verdict != want {
		n.t.Errorf("%s takes the seat to resize from %d to %d: %+v, want %v", who, from, to, ans, want)
	}
}

func (n *numbered) set(who string, from, to int64, want Verdict) {
	n.t.Helper()
	var ans Answer
	if n.Record, ans = SetNumber(n.Record, seatOf(who, from, to), 3*time.Second, 4*time.Second, n.now); ans.Verdict != want {
		n.t.Errorf("%s sets the number from %d to %d: %+v, want %v", who, from, to, ans, want)
	}
}

func (n *numbered) pass(d time.Duration) { n.now = n.now.Add(d) }

func seatOf(who string, from, to int64) Seat {
	return Seat{Who: who, From: Semaphore(from), To: Semaphore(to)}
}

// A node sets the number for the resize that has the seat, and keeps it for a while though
// nobody uses the lock.
func TestNumberIsSetAndKept(t *testing.T) {
	n := &numbered{t: t, now: clock.Instant(time.Hour)}
	n.set("x", 3, 2, NotHeld)
	n.seat("x", 3, 2, Done)
	n.seat("y", 3, 2, Done) // takes it from x
	n.set("x", 3, 2, NotHeld)
	if n.Idle() {
		t.Error("a record with a seat is idle, want it kept")
	}
	n.set("y", 3, 2, Done)
	n.set("y", 3, 2, Done)
	if ans := n.ask("a", 3, "", Mismatch); ans.Spec != Semaphore(2) || ans.ExpiresIn != 4*time.Second || ans.Blocker != (Blocker{}) {
		t.Errorf("ask by the number before of a lock that nobody uses: %+v, want the number kept for 4s", ans)
	}
	n.ask("a", 2, "", Granted)
	n.pass(3 * time.Second)
	n.set("y", 3, 2, NotHeld) // the seat has ended
	n.ask("b", 3, "", Mismatch)
	n.pass(time.Second)
	n.ask("b", 3, "", Granted)
	n.seat("z", 5, 4, Mismatch)
	n.seat("z", 4, 3, Done)
	if r, ans := SetNumber(n.Record, seatOf("z", 5, 4), time.Second, time.Second, n.now); ans.Verdict != Mismatch || r.Spec != Semaphore(3) {
		t.Errorf("set while the lock is in use by another number: %+v, want a mismatch", ans)
	}
}

// Leases stay when the number shrinks, and waiters lose their places. While a lease has a slot
// too many, nobody is admitted, nor is such a lease given back.
func TestNobodyIsAdmittedBesideASlotTooMany(t *testing.T) {
	n := &numbered{t: t, now: clock.Instant(time.Hour)}
	n.ask("c", 3, "2", Granted)
	n.Record = n.wait(Ask{Spec: Semaphore(3), Owner: "w", Weight: 1, Wait: time.Second, Fair: true, Numbered: true}, n.now)
	n.seat("x", 3, 2, Done)
	n.set("x", 3, 2, Done)
	if len(n.Queue) > 0 || len(n.Holds) != 1 || n.Check() != nil {
		t.Errorf("after the number was set: %+v, %v, want the lease and no waiter", n.Record, n.Check())
	}
	if ans := n.ask("a", 2, "", Busy); ans.Blocker.Owner != "c" {
		t.Errorf("ask beside a slot too many: %+v, want c in the way", ans)
	}
	n.ask("a", 2, "0", Busy)
	n.ask("c", 2, "2", Mismatch)
	n.Record = n.wait(Ask{Spec: Semaphore(2), Owner: "w", Weight: 1, Wait: time.Second, Fair: true, Numbered: true}, n.now)
	if _, turns := Advance(n.Record, 0, n.now); len(turns) > 0 {
		t.Errorf("turns %+v beside a slot too many, want none", turns)
	}
	if r, ans := Admit(n.Record, Ask{Spec: Semaphore(2), Owner: "c", TTL: time.Second, Numbered: true, Wait: time.Second}, n.now); ans.Verdict != Busy || r.place("c") >= 0 {
		t.Errorf("its owner asks by the new number: %+v, want busy without a place", ans)
	}
	if _, ans := Renew(n.Record, "c", time.Second, n.now); ans.Verdict != Done {
		t.Errorf("renewal of a slot too many: %+v, want done", ans)
	}
	n.Record, _ = Release(n.Record, End{Owner: "c"}, n.now)
	if _, turns := Advance(n.Record, 0, n.now); len(turns) != 1 || turns[0].Slots != "0" {
		t.Errorf("turns %+v after the release, want w with slot 0", turns)
	}
}

// After a resize has set the number, the one before is the node's for renewals, too, for the time
// of the seat. To take the seat is not enough: such a request may arrive late.
func TestNumbersOf(t *testing.T) {
	n := &numbered{t: t, now: clock.Instant(time.Hour)}
	n.ask("a", 3, "", Granted)
	for _, c := range []struct {
		after func()
		want  Numbers
	}{
		{func() {}, Numbers{Own: 3}},
		{func() { n.seat("x", 3, 2, Done) }, Numbers{Own: 3}},
		{func() { n.set("x", 3, 2, Done) }, Numbers{2, 3}},
		{func() { n.pass(3 * time.Second) }, Numbers{Own: 2}},
	} {
		c.after()
		if got := NumbersOf(n.Record, n.now); got != c.want {
			t.Errorf("numbers %+v, want %+v", got, c.want)
		}
	}
	if h := (Numbers{Own: 3, Before: 2}); !h.Have(3) || !h.Have(2) || h.Have(4) || h.Have(0) || !(Numbers{}).Have(0) {
		t.Errorf("%+v has 3 %v, 2 %v, 4 %v, 0 %v", h, h.Have(3), h.Have(2), h.Have(4), h.Have(0))
	}
	if got := NumbersOf(Record{Spec: ReadWrite}, n.now); got != (Numbers{}) {
		t.Errorf("numbers of a read-write lock %+v, want none", got)
	}
}
