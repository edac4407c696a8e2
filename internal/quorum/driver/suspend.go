package driver

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum"
)

// suspendCheck is how often a process with waiters checks whether its machine was suspended.
// On Linux timers stand still meanwhile, but places end: without the check, a waiter would
// refresh a place that has ended as late as if no time had passed. Most of what an idle waiter
// costs its machine is this check; see docs/performance.md.
const suspendCheck = time.Second

// suspendWatch compares the clock, which counts suspend, with a timer, which does not. It
// runs while anybody waits. The mutex of the waiters guards it.
type suspendWatch struct {
	running bool
	readAt  clock.Instant
}

// watchSuspend begins to watch, unless that is done already.
func (w *waiters[P]) watchSuspend(c clock.Clock) {
	now := c.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := &w.suspend; !s.running {
		s.running, s.readAt = true, now
		time.AfterFunc(suspendCheck, func() { w.checkSuspend(c) })
	}
}

// checkSuspend steps every attempt that waits if the machine was suspended.
func (w *waiters[P]) checkSuspend(c clock.Clock) {
	now := c.Now()
	w.mu.Lock()
	s := &w.suspend
	slept := now.Sub(s.readAt) > 2*suspendCheck
	if s.running, s.readAt = len(w.byOwner) > 0, now; s.running {
		time.AfterFunc(suspendCheck, func() { w.checkSuspend(c) })
	}
	w.mu.Unlock()
	if !slept {
		return
	}
	for _, owner := range w.owners() {
		w.withOpen(owner, func(a *attempt[P]) {
			a.waiting.timerAt = 0
			a.applyLocked(quorum.Event{Kind: quorum.Tick}, c.Now())
		})
	}
}
