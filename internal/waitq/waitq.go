// Package waitq is the state machine of the goroutines in one process that wait for
// the same lock on the same terms. At most one of them asks the store, or has a place
// in the store's queue, on behalf of all. None does while one of them has a lease that
// it will pass on.
//
//	idle      Arrive          trying, unless others are known to want the lock
//	idle      (waiters)       entering
//	trying    TryGranted      holding
//	trying    TryRefused      entering
//	trying    TryFailed       idle
//	entering  Enter           waiting; idle if no waiter is left
//	waiting   Granted         holding
//	waiting   Enter           waiting, at the next place; idle if no waiter is left
//	waiting   PlaceOver       idle
//	holding   Unlock          holding, by the next waiter; or ending
//	ending    TokensReserved  holding, by the next waiter; or still ending
//	holding   LeaseOver       idle
//	ending    LeaseOver       idle
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
//   - Holding: a waiter has the lease. When it leaves the lease, that passes to the
//     next waiter with a token of its own, and the store is not asked.
//   - Ending: the lease was left and not passed on: the store is asked for more
//     tokens, or to release it.
//
// The queue does not keep a lease that may not be passed on: after its grant the queue
// is idle, and asks again for the next waiter.
//
// A Queue starts no goroutine and calls no store. Step takes an event and the current
// instant, and returns the actions that the driver carries out. The driver makes one
// call of Step at a time.
package waitq

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Phase is how far a queue has come: whether it asks the store, waits there or has a
// lease.
type Phase uint8

// The phases: see the package's documentation.
const (
	Idle Phase = iota
	Trying
	Entering
	Waiting
	Holding
	Ending
)

var phaseNames = [...]string{"idle", "trying", "entering", "waiting", "holding", "ending"}

func (p Phase) String() string { return phaseNames[p] }

// Queue holds the goroutines that wait for one lock on the same terms, in FIFO order. T
// is the driver's type of a waiter.
type Queue[T any] struct {
	order[T]   // which shows its waiters: Waiters, Len, Foremost, Ahead
	ttl        time.Duration
	bounds     *Cohort
	contention *Contention

	phase     Phase
	self      bool // a waiter asks for the queue in its own goroutine
	contended bool // at this place the store has given a reason to wait
	known     bool // there is a reason why the lock is not granted yet

	rank        uint64 // of the place, kept until the lock is granted or nobody waits
	reservation reservation
	trouble     trouble
	cohort      cohort
}

// New returns an idle queue. Its waiters go on waiting for ttl while the store gives no
// answer. Queues of one lock share c.
func New[T any](ttl time.Duration, bounds *Cohort, c *Contention) Queue[T] {
	return Queue[T]{ttl: ttl, bounds: bounds, contention: c}
}

// Idle reports whether the queue can be forgotten.
func (q *Queue[T]) Idle() bool {
	return q.phase == Idle && q.order.first == nil && !q.reservation.exists
}

// Phase returns the phase after the last step.
func (q *Queue[T]) Phase() Phase { return q.phase }

// Holds reports whether a lease is passed on in the queue, or was until its last
// holder left it.
func (q *Queue[T]) Holds() bool { return q.phase == Holding || q.phase == Ending }

// Rank returns the rank of the place in the store's queue. It is 0 if there is no place
// and the next one has no rank to keep.
func (q *Queue[T]) Rank() uint64 { return q.rank }

// Contended reports whether the store has given a reason to wait at the place.
func (q *Queue[T]) Contended() bool { return q.contended }

// Reserved reports whether a place is reserved.
func (q *Queue[T]) Reserved() bool { return q.reservation.exists }

// RejoinWanted reports whether the place for the next wait should be taken with the
// release of a lease: a goroutine waits, or will soon. attached says that the lease is
// the one that the queue passed on.
func (q *Queue[T]) RejoinWanted(attached bool) bool {
	return attached && q.order.first != nil || q.contention.Expected()
}

// Patience returns how long w goes on waiting for a store that gives it no answer: for
// its TTL. It returns false if there is no such trouble.
func (q *Queue[T]) Patience(w *Waiter[T], now clock.Instant) (left time.Duration, trouble bool) {
	if q.trouble == 0 || q.Holds() {
		return 0, false
	}
	return q.trouble.left(w.joined, q.ttl, now), true
}
