// Package waitq is the state machine of the goroutines in one process that wait for
// the same lock on the same terms. At most one of them asks the store, or has a place
// in the store's queue, on behalf of all.
//
//	idle      Arrive       trying, unless others are known to want the lock
//	idle      (waiters)    entering
//	trying    TryGranted   idle
//	trying    TryRefused   entering
//	trying    TryFailed    idle
//	entering  Enter        waiting; idle if no waiter is left
//	waiting   Granted      idle
//	waiting   Enter        waiting, at the next place; idle if no waiter is left
//	waiting   PlaceOver    idle
//
// The phases:
//
//   - Idle: nobody asks the store. If anybody waits, the next phase begins in the same
//     step.
//   - Trying: the first goroutine asks once. It is not in the queue, since mostly it
//     is granted the lock and nobody has to wait.
//   - Entering: a goroutine is about to take a place in the store's queue.
//   - Waiting: it has a place there, and waits for a grant. The grant goes to the
//     waiter that is first by then.
//
// A lease is no business of the queue: after its grant the queue is idle, and asks again
// for the next waiter. So that one has a place in the store's queue while the holder is
// still at work, and the store hands the lock to it when the holder releases it.
//
// A Queue starts no goroutine and calls no store. Step takes an event and the current
// instant, and returns the actions that the driver carries out. The driver makes one
// call of Step at a time.
package waitq

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Phase is how far a queue has come: whether it asks the store or waits there.
type Phase uint8

// The phases: see the package's documentation.
const (
	Idle Phase = iota
	Trying
	Entering
	Waiting
)

var phaseNames = [...]string{"idle", "trying", "entering", "waiting"}

func (p Phase) String() string { return phaseNames[p] }

// Queue holds the goroutines that wait for one lock on the same terms, in FIFO order. T
// is the driver's type of a waiter.
type Queue[T any] struct {
	order[T]   // which shows its waiters: Waiters, Len, Foremost
	ttl        time.Duration
	contention *Contention

	phase     Phase
	self      bool // a waiter asks for the queue in its own goroutine
	contended bool // at this place the store has given a reason to wait
	refused   bool // another owner had the lock when a goroutine that waits asked first
	known     bool // there is a reason why the lock is not granted yet

	rank        uint64 // of the place, kept until the lock is granted or nobody waits
	reservation reservation
	trouble     trouble
}

// New returns an idle queue. Its waiters go on waiting for ttl while the store gives no
// answer. Queues of one lock share c.
func New[T any](ttl time.Duration, c *Contention) Queue[T] {
	return Queue[T]{ttl: ttl, contention: c}
}

// Idle reports whether the queue can be forgotten.
func (q *Queue[T]) Idle() bool {
	return q.phase == Idle && q.order.first == nil && !q.reservation.exists
}

// Phase returns the phase after the last step.
func (q *Queue[T]) Phase() Phase { return q.phase }

// Rank returns the rank of the place in the store's queue. It is 0 if there is no place
// and the next one has no rank to keep.
func (q *Queue[T]) Rank() uint64 { return q.rank }

// Contended reports whether the store has given a reason to wait at the place.
func (q *Queue[T]) Contended() bool { return q.contended }

// Reserved reports whether a place is reserved.
func (q *Queue[T]) Reserved() bool { return q.reservation.exists }

// RejoinWanted reports whether the place for the next wait should be taken with the
// release of a lease: no goroutine asks the store, and one will soon.
func (q *Queue[T]) RejoinWanted() bool {
	return q.phase == Idle && !q.reservation.exists && q.contention.Expected()
}

// Patience returns how long w goes on waiting for a store that gives it no answer: for
// its TTL. It returns false if there is no such trouble.
func (q *Queue[T]) Patience(w *Waiter[T], now clock.Instant) (left time.Duration, trouble bool) {
	if q.trouble == 0 {
		return 0, false
	}
	return q.trouble.left(w.joined, q.ttl, now), true
}
