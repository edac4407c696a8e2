package rule

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
)

// A lease has the smallest slot that was free when it began, and keeps it.
func TestSlots(t *testing.T) {
	var r Record
	ask := func(owner string) (ans Answer) {
		t.Helper()
		r, ans = Admit(r, Ask{Spec: Semaphore(3), Owner: owner, TTL: 100}, 0)
		return ans
	}
	for slot, owner := range []string{"a", "b", "c"} {
		if ans := ask(owner); ans.Verdict != Granted || ans.Slot != int64(slot) {
			t.Errorf("%s: %+v, want slot %d", owner, ans, slot)
		}
	}
	r, _ = Release(r, End{Owner: "b"}, 0)
	if ans := ask("c"); !ans.Again || ans.Slot != 2 {
		t.Errorf("c again: %+v, want slot 2", ans)
	}
	r = r.wait(Ask{Owner: "d", Weight: 1, Wait: 100, Fair: true}, 0)
	r, _ = Advance(r, 0, 0)
	if h := r.Holds[len(r.Holds)-1]; h.Owner != "d" || h.Slot != 1 {
		t.Errorf("d: %+v, want slot 1", h)
	}
}

// A mismatch names the kind as which the lock is in use, and a holder.
func TestMismatchNamesTheKind(t *testing.T) {
	r, _ := Admit(Record{}, Ask{Spec: ReadWrite, Owner: "a", TTL: 100}, 0)
	if _, ans := Admit(r, Ask{Spec: Mutex, Owner: "b", TTL: 100}, 0); ans.Verdict != Mismatch || ans.Spec != ReadWrite || ans.Blocker.Owner != "a" {
		t.Errorf("ask for a mutex while it is a read-write lock: %+v, want a mismatch that names the kind and a", ans)
	}
}

// A lease of a semaphore has as many slots as its weight: the smallest that are free, those
// that it wants if they are free, or exactly those.
func TestSlotsOfHeavyLeases(t *testing.T) {
	var r Record
	now := clock.Instant(time.Hour)
	have := func(want string) {
		t.Helper()
		var holds []string
		for _, h := range r.Holds {
			holds = append(holds, h.Owner+" "+string(h.Slots))
		}
		if got := strings.Join(holds, ", "); got != want {
			t.Errorf("leases %q, want %q", got, want)
		}
	}
	admit := func(a Ask, want Verdict, slots Slots) {
		t.Helper()
		a.Spec, a.Numbered, a.TTL = Semaphore(4), true, time.Second
		var ans Answer
		if r, ans = Admit(r, a, now); ans.Verdict != want || ans.Slots != slots {
			t.Errorf("%+v: %+v, want %v with slots %q", a, ans, want, slots)
		}
	}
	release := func(owner string) { r, _ = Release(r, End{Owner: owner}, now) }

	admit(Ask{Owner: "a"}, Granted, "0")
	admit(Ask{Owner: "b", Weight: 2}, Granted, "1,2")
	admit(Ask{Owner: "b", Weight: 2}, Granted, "1,2")
	release("a")
	admit(Ask{Owner: "c", Weight: 2}, Granted, "0,3")
	release("b")
	have("c 0,3")
	// An owner gets the slots that it wants if they are free, and others otherwise.
	admit(Ask{Owner: "d", Slots: "2"}, Granted, "2")
	release("d")
	admit(Ask{Owner: "d", Slots: "3"}, Granted, "1")
	// An owner that must have exact slots gets these or none. Its lease of others ends in any
	// case.
	admit(Ask{Owner: "e", Slots: "1", Exact: true}, Busy, "")
	admit(Ask{Owner: "d", Slots: "0", Exact: true}, Busy, "")
	have("c 0,3")
	admit(Ask{Owner: "e", Slots: "1,2", Weight: 2, Exact: true}, Granted, "1,2")
	have("c 0,3, e 1,2")
	// A waiter that must have slots which are taken is passed over.
	admit(Ask{Owner: "f", Slots: "0", Exact: true, Fair: true, Wait: time.Second, Ticket: 1}, Busy, "")
	admit(Ask{Owner: "g", Fair: true, Wait: time.Second, Ticket: 2}, Busy, "")
	release("e")
	r, _ = Advance(r, 0, now)
	have("c 0,3, g 1")
	admit(Ask{Owner: "h", Fair: true}, Granted, "2")
	release("c")
	r, _ = Advance(r, 0, now)
	have("g 1, h 2, f 0")
	// Malformed slots, or another number of them than the weight, are a mismatch.
	release("f")
	for _, s := range []Slots{"", "x", "3,0", "4", "00", "0,3", "-1"} {
		admit(Ask{Owner: "i", Slots: s, Exact: true}, Mismatch, "")
	}
	if err := r.Check(); err != nil {
		t.Error(err)
	}
}

// A waiter that must have slots which are taken is passed over, also if it does not fit. A broken
// lease does not end because its owner asks for other slots.
func TestExactWaiterIsPassedOver(t *testing.T) {
	var r Record
	ask := func(owner string, weight int64, slots Slots) (ans Answer) {
		t.Helper()
		r, ans = Admit(r, Ask{Spec: Semaphore(3), Owner: owner, Weight: weight, TTL: 100, Numbered: true, Fair: slots == "", Slots: slots, Exact: slots != "", Wait: 100}, 0)
		return ans
	}
	ask("a", 1, "")
	ask("b", 2, "")
	ask("c", 2, "0,1")
	ask("d", 1, "")
	r, _ = Release(r, End{Owner: "a"}, 0)
	if _, turns := Advance(r, 0, 0); len(turns) != 1 || turns[0].Owner != "d" || turns[0].Slots != "0" {
		t.Errorf("turns %+v, want d with slot 0", turns)
	}
	r, _ = BreakLease(r, Break{Owner: "b", Token: r.Holds[0].Token}, 0)
	if r = DropOthers(r, "b", "0,1", 0); len(r.Holds) != 1 {
		t.Errorf("leases %+v after DropOthers, want the broken one kept", r.Holds)
	}
	if ans := ask("b", 2, "0,1"); ans.Verdict != Buried {
		t.Errorf("ask of the owner of a broken lease: %+v, want buried", ans)
	}
}

// A semaphore of very many permits numbers its leases instead of its permits.
func TestSlotsOfManyPermits(t *testing.T) {
	r := Record{}
	for i, owner := range []string{"a", "b"} {
		var ans Answer
		if r, ans = Admit(r, Ask{Spec: Semaphore(1 << 40), Owner: owner, Weight: 1 << 39, Numbered: true, TTL: 100}, 0); ans.Verdict != Granted || ans.Slot != int64(i) || ans.Slots != "" {
			t.Errorf("%s: %+v, want slot %d and no list of slots", owner, ans, i)
		}
	}
}

// Places are in the order of their tickets. A place that is refreshed keeps its ticket.
func TestTickets(t *testing.T) {
	r, _ := Admit(Record{}, Ask{Spec: Mutex, Owner: "holder", TTL: 100}, 0)
	for _, p := range []struct {
		owner  string
		ticket uint64
	}{{"c", 3}, {"a", 1}, {"d", 3}, {"b", 2}, {"c", 1}} {
		r, _ = Admit(r, Ask{Spec: Mutex, Owner: p.owner, TTL: 100, Wait: 100, Fair: true, Ticket: p.ticket}, 0)
	}
	if got := owners(r); got != "holder | a b c d | " {
		t.Errorf("holders, queue and tombstones are %q, want \"holder | a b c d | \"", got)
	}
}

// A node confirms a token if the owner has a lease there, with the same slots.
func TestConfirmToken(t *testing.T) {
	r, _ := Admit(Record{}, Ask{Spec: Semaphore(2), Owner: "a", Numbered: true, TTL: 100}, 0)
	for _, c := range []struct {
		owner string
		slots Slots
		token fence.Token
		want  Verdict
		last  fence.Token
	}{{"b", "", 5, NotHeld, 1}, {"a", "1", 5, NotHeld, 1}, {"a", "0", 5, Done, 5}, {"a", "", 3, Done, 5}} {
		var ans Answer
		if r, ans = ConfirmToken(r, c.owner, c.slots, c.token, 0); ans.Verdict != c.want || r.Token != c.last {
			t.Errorf("%+v: %+v, last token %v, want %v and %v", c, ans, r.Token, c.want, c.last)
		}
	}
	if r = DropOthers(r, "a", "0", 0); len(r.Holds) != 1 || r.Holds[0].Token != 5 {
		t.Errorf("DropOthers with the slots of the lease: %+v, want the lease kept with token 5", r)
	}
	if r = DropOthers(r, "a", "1", 0); len(r.Holds) != 0 {
		t.Errorf("DropOthers with other slots: %+v, want no lease", r)
	}
}
