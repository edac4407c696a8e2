package driver

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum"
)

// waiters holds the attempts that wait, by owner, so that pushes find them, and remembers
// the owners that have left.
type waiters[P any] struct {
	last       atomic.Uint64 // number of the last attempt that began to wait
	reserved   atomic.Int64  // number of attempts that no caller waits for yet; see ReleaseAndRejoin
	mu         sync.Mutex
	byOwner    map[string]*attempt[P]
	departures departures
	suspend    suspendWatch
}

func (w *waiters[P]) add(a *attempt[P]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byOwner == nil {
		w.byOwner = map[string]*attempt[P]{}
	}
	w.byOwner[a.r.Owner] = a
}

// removeLocked removes an attempt that nobody waits for any more. The mutex of a is held.
func (w *waiters[P]) removeLocked(a *attempt[P]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.byOwner, a.r.Owner)
	w.departures.add(a.r.Lease, a.core.Verdict() == quorum.Won, a.core.Token())
}

// count returns how many attempts wait.
func (w *waiters[P]) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.byOwner)
}

// owners returns the owners of all attempts that wait, in order of arrival.
func (w *waiters[P]) owners() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	owners := slices.Collect(maps.Keys(w.byOwner))
	slices.SortFunc(owners, func(x, y string) int {
		return cmp.Compare(w.byOwner[x].waiting.number, w.byOwner[y].waiting.number)
	})
	return owners
}

// withOpen calls do with the attempt of owner, if it is open. It reports whether there
// is an attempt: one that is no longer open releases what it was granted by itself.
func (w *waiters[P]) withOpen(owner string, do func(*attempt[P])) (found bool) {
	return w.with(owner, func(a *attempt[P]) {
		if a.core.Verdict() == quorum.Open {
			do(a)
		}
	})
}

// with calls do with the attempt of owner, whatever its verdict. It reports whether there
// is one.
func (w *waiters[P]) with(owner string, do func(*attempt[P])) (found bool) {
	a := w.find(owner)
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	// The memory may have been reused for another attempt.
	if a.users > 0 && a.waiting.waits && a.r.Owner == owner {
		do(a)
	}
	return true
}

// find returns the attempt of owner, or nil.
func (w *waiters[P]) find(owner string) *attempt[P] {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.byOwner[owner]
}

// takeReserved returns the attempt that ReleaseAndRejoin left for owner and marks it as
// taken, or nil.
func (w *waiters[P]) takeReserved(owner string) *attempt[P] {
	if w.reserved.Load() == 0 { // the usual case
		return nil
	}
	a := w.find(owner)
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.waiting.reserved || a.r.Owner != owner {
		return nil
	}
	a.waiting.reserved = false
	w.reserved.Add(-1)
	return a
}

// releasing notes that the lease of an owner is being released at these nodes. It returns
// nil if the owner did not wait for the lease, or is not remembered.
func (w *waiters[P]) releasing(owner string, nodes quorum.Set) *departure {
	if !w.departures.some.Load() {
		return nil // the usual case without waiters
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.departures.byOwner[owner]
	if d != nil {
		d.held, d.releasing = false, nodes
	}
	return d
}

// released notes that a node has answered a release, or will not answer it. It reports whether
// the node has pushed a grant meanwhile.
func (w *waiters[P]) released(d *departure, node int) (late bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	late = d.late.Has(node)
	d.releasing, d.late = d.releasing.Without(node), d.late.Without(node)
	return late
}

// wasGranted reports whether an owner that has left was granted the lock.
func (w *waiters[P]) wasGranted(owner string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.departures.byOwner[owner]
	return d != nil && d.token > 0
}

// watchSuspend has every attempt that waits stepped when the machine was suspended.
func (w *waiters[P]) watchSuspend(c clock.Clock) {
	now := c.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.suspend.begin(now, func() { w.checkSuspend(c) })
}

// checkSuspend steps every attempt that waits if the machine was suspended.
func (w *waiters[P]) checkSuspend(c clock.Clock) {
	now := c.Now()
	w.mu.Lock()
	suspended := w.suspend.checked(now, len(w.byOwner) > 0, func() { w.checkSuspend(c) })
	w.mu.Unlock()
	if !suspended {
		return
	}
	for _, owner := range w.owners() {
		w.withOpen(owner, func(a *attempt[P]) {
			a.alarm.at = 0
			a.applyLocked(quorum.Event{Kind: quorum.Tick}, c.Now())
		})
	}
}
