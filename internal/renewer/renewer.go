// Package renewer keeps the deadlines of the leases of one client: when each has to be
// renewed, and when its holder has to be notified of its loss. One timer serves all of
// them, and does no I/O; a few goroutines renew, many leases at a time, and more of them
// if the store does not answer those. None runs while nothing is held or due.
//
// When a lease is due is decided by internal/leasefsm. The Driver
// makes the renewals and handles a loss.
package renewer

import (
	"math"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/leasefsm"
)

const (
	// maxNap bounds how long the timer runs. Go's timers stand still while the
	// machine is suspended. So the clock is read again this often, and a holder whose
	// lease ended meanwhile is notified.
	maxNap = 250 * time.Millisecond
	// maxWorkers renewals are under way at once, of maxBatch leases each. More are sent only
	// for leases that have waited for 1/patience of their interval: without the limit, a slow
	// store would get many small batches.
	maxWorkers = 4
	patience   = 4
	maxBatch   = 512
	// early is the fraction, 1/early, of its interval by which a renewal may be sent
	// before its time, so that leases are renewed together.
	early = 32
)

// Lease is a lease with its place among the deadlines. T is the driver's type of a lease.
type Lease[T any] struct {
	leasefsm.Lease
	Of     T
	at     int           // index among the deadlines, -1 when not there
	sendBy clock.Instant // when its renewal, which is due, has to be sent
}

// NewLease returns a lease that is not kept yet.
func NewLease[T any](of T, l leasefsm.Lease) Lease[T] { return Lease[T]{Lease: l, Of: of, at: -1} }

// Driver carries out what a Renewer finds due. The renewer calls it from goroutines of
// its own.
type Driver[T any] interface {
	// The mutex guards the Renewer and its leases.
	sync.Locker
	// LockAt locks the mutex and returns the time.
	LockAt() clock.Instant
	// Step applies an event to a lease by calling Renewer.Step, and does what follows
	// from it. The mutex is held.
	Step(of T, e leasefsm.Event, now clock.Instant)
	// Renew renews leases for which Step has seen RenewalSent, and steps them with the
	// outcome. It blocks, and returns also if something panics.
	Renew(batch []T)
	// Contain runs f. It returns also if f panics or ends the goroutine.
	Contain(f func())
}

// Renewer keeps the deadlines of leases. The driver's mutex guards it: hold it when
// calling a method.
type Renewer[T any] struct {
	driver  Driver[T]
	leases  deadlines[T]
	due     []*Lease[T]   // renewals to send
	sendBy  clock.Instant // the earliest of theirs
	workers int
	timer   *time.Timer // runs sweep
	armed   bool        // the timer runs
	sweepAt clock.Instant
}

// Init makes the Renewer ready for use.
func (r *Renewer[T]) Init(d Driver[T]) {
	r.driver = d
	r.timer = time.AfterFunc(maxNap, r.sweep)
	r.timer.Stop()
}

// Add keeps the deadlines of l, which is live, until it is over.
func (r *Renewer[T]) Add(l *Lease[T], now clock.Instant) {
	r.leases.add(l)
	r.arm(now)
}

// Step applies an event to l and keeps its place among the deadlines.
func (r *Renewer[T]) Step(l *Lease[T], e leasefsm.Event, start, now clock.Instant) {
	l.Lease = l.Lease.Step(e, start, now)
	if l.at < 0 {
		return
	}
	if next, live := l.Next(); live {
		r.leases.move(l.at, next)
	} else {
		r.leases.remove(l.at)
	}
	r.arm(now)
}

// Find returns the leases that match, in no order. It looks at all of them.
func (r *Renewer[T]) Find(match func(of T) bool) (found []T) {
	for _, d := range r.leases {
		if match(d.l.Of) {
			found = append(found, d.l.Of)
		}
	}
	return found
}

// arm sets the timer for the earliest deadline, unless it fires before that anyway.
func (r *Renewer[T]) arm(now clock.Instant) {
	if len(r.leases) == 0 { // if it fires, for nothing, that is cheaper than to set it for each lease
		return
	}
	next := r.leases[0].at
	if len(r.due) > 0 {
		next = min(next, r.sendBy)
	}
	if r.armed && r.sweepAt <= next {
		return
	}
	if clockRead {
		next = min(next, now.Add(maxNap))
	}
	r.armed, r.sweepAt = true, next
	r.timer.Reset(max(r.sweepAt.Sub(now), 1))
}

// sweep steps every lease whose deadline has come, and starts the renewals that are due.
func (r *Renewer[T]) sweep() {
	r.driver.Contain(func() {
		r.sweepDue()
		now := r.driver.LockAt() // again: a sweep of many leases takes time
		defer r.driver.Unlock()
		r.armed = false
		r.arm(now)
	})
}

func (r *Renewer[T]) sweepDue() {
	now := r.driver.LockAt()
	defer r.driver.Unlock()
	r.armed, r.sweepAt = true, now // no step below needs to set the timer
	for len(r.leases) > 0 {
		l := r.leases[0].l
		if l.Due(now) || l.Due(now.Add(l.Renew/early)) {
			r.addDue(l, now)
			r.driver.Step(l.Of, leasefsm.RenewalSent, now)
		} else if r.leases[0].at <= now {
			r.driver.Step(l.Of, leasefsm.Tick, now)
		} else {
			break
		}
	}
	if len(r.due) > 0 && (r.workers < maxWorkers || r.sendBy <= now) {
		r.workers++
		r.sendBy = math.MaxInt64 // the worker looks what is left
		go r.work()
	}
}
