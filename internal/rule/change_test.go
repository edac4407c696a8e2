package rule

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
)

func downgrade(owner string, floor fence.Token) action {
	return action{"downgrade " + owner, func(r Record, now clock.Instant) (Record, Answer) { return Downgrade(r, owner, 100*ms, floor, now) }}
}

func resize(from, to int64) action {
	return action{"resize", func(r Record, now clock.Instant) (Record, Answer) {
		return Resize(r, Semaphore(from), Semaphore(to), now)
	}}
}

// The writer becomes a reader with a new token, which other readers share. A waiting writer
// still stops new ones.
func TestDowngrade(t *testing.T) {
	writer := func(owner string) Ask {
		return Ask{Spec: ReadWrite, Owner: owner, Weight: ReadWriteLimit, TTL: 100 * ms, Fair: true}
	}
	reader := func(owner string) Ask {
		return Ask{Spec: ReadWrite, Owner: owner, Weight: 1, TTL: 100 * ms, Fair: true}
	}
	waits := func(a Ask) Ask { a.Wait = 100 * ms; return a }
	again := granted(2, 1, 100*ms)
	again.Again = true
	behind := busy("w", 100*ms, 0)
	behind.Blocker.Waiting = true
	play(t, []step{
		{0, ask(writer("a")), granted(1, 1, 100*ms)},
		{0, downgrade("b", 0), Answer{Verdict: NotHeld}},
		{0, ask(waits(reader("b"))), busy("a", 100*ms, 1)},
		{0, downgrade("a", 0), granted(2, 1, 100*ms)},
		{0, downgrade("a", 0), again},
		{0, advance(t, 0, handed("b", 2, 100*ms)), Answer{}},
		{0, ask(reader("c")), granted(2, 1, 100*ms)},
		{0, ask(waits(writer("w"))), busy("a", 100*ms, 1)},
		{0, ask(reader("d")), behind},
		{0, release("a"), released(2)},
		{0, release("b"), released(2)},
		{0, release("c"), released(2)},
		{0, advance(t, 0, handed("w", 3, 100*ms)), Answer{}},
		{0, downgrade("w", 40), granted(40, 1, 100*ms)},
	})
	broken := Answer{Verdict: Done, Token: 1, Count: 1, ExpiresIn: 100 * ms}
	play(t, []step{
		{0, ask(writer("a")), granted(1, 1, 100*ms)},
		{0, breaks("a", 1, false), broken},
		{10 * ms, downgrade("a", 0), Answer{Verdict: NotHeld}},
		{100 * ms, breaks("a", 1, false), Answer{Verdict: Done, Token: 1}},
	})
	play(t, []step{
		{0, ask(Ask{Spec: Mutex, Owner: "a", TTL: 100 * ms}), granted(1, 1, 100*ms)},
		{0, downgrade("a", 0), Answer{Verdict: Mismatch}},
	})
}

// Leases stay when the number of permits changes, and no owner is admitted while they exceed
// it. Waiters have to ask again.
func TestResize(t *testing.T) {
	sem := func(n int64, owner string) Ask {
		return Ask{Spec: Semaphore(n), Owner: owner, TTL: 100 * ms, Fair: true}
	}
	waits := func(a Ask) Ask { a.Wait = 100 * ms; return a }
	other := busy("a", 100*ms, 0)
	other.Verdict = Mismatch
	r := play(t, []step{
		{0, resize(3, 2), Answer{Verdict: Done}},
		{0, ask(sem(3, "a")), granted(1, 1, 100*ms)},
		{0, ask(sem(3, "b")), granted(2, 1, 100*ms)},
		{0, ask(sem(3, "c")), granted(3, 1, 100*ms)},
		{0, ask(waits(sem(3, "d"))), busy("a", 100*ms, 1)},
		{0, resize(4, 2), other},
		{0, resize(3, 1), Answer{Verdict: Done}},
		{0, resize(3, 1), Answer{Verdict: Done}},
		{0, ask(waits(sem(3, "d"))), other},
		{0, ask(waits(sem(1, "e"))), busy("a", 100*ms, 1)},
		{0, resize(1, 2), Answer{Verdict: Done}},
	})
	if err := r.Check(); err != nil || len(r.Queue) != 0 || len(r.Holds) != 3 {
		t.Errorf("after resizing to two permits: %+v, %v, want three leases and no waiter", r, err)
	}
	const start = clock.Instant(time.Hour) // as in play
	var ans Answer
	for _, owner := range []string{"a", "b"} {
		if _, ans = Admit(r, sem(2, "f"), start); ans.Verdict != Busy {
			t.Errorf("ask beside %d leases of two permits: %+v, want busy", len(r.Holds), ans)
		}
		r, _ = Release(r, End{Owner: owner}, start)
	}
	if r, ans = Admit(r, sem(2, "f"), start); ans.Verdict != Granted || r.Check() != nil || r.Was != 0 {
		t.Errorf("ask beside one lease of two permits: %+v, record %+v, want it granted and Was 0", ans, r)
	}
}
