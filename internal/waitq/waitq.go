// Package waitq is the state machine of the goroutines in one process that wait for
// the same lock on the same terms. For all of them at most one asks the store or has
// a place in the store's queue, and none does while one of them has a lease that it
// will pass on.
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
// A lease that may not be passed on is no concern of the queue: after the grant it is
// idle, and asks again for the next waiter.
//
// A Queue starts no goroutine and calls no store. Step takes an event and the current
// instant, and returns the actions that the driver carries out. The driver makes one
// call of Step at a time.
package waitq

import (
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Phase says who asks the store for the queue, or that a lease is held.
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

// Queue is the goroutines that wait for one lock on the same terms, first come first
// served. T is what the driver knows a waiter by.
type Queue[T any] struct {
	ttl        time.Duration
	bounds     *Cohort
	contention *Contention

	first, last *Waiter[T]
	self        *Waiter[T] // waits at the place in its own goroutine; nil: another goroutine does

	// The flags are side by side, since there is a queue for every lock that is held.
	phase     Phase
	contended bool // at this place the store has given a reason to wait
	known     bool // there is a reason why the lock is not granted yet
	kept      bool // a place is reserved
	old       bool // and a Lapse has found it once already

	rank     uint64        // of the place, kept until the lock is granted or nobody waits
	keptRank uint64        // of the reserved place
	trouble  clock.Instant // since when the store has given no answer at all
	cohort   cohort
}

// New returns an idle queue. Its waiters go on waiting for ttl while the store gives no
// answer. Queues of one lock share c.
func New[T any](ttl time.Duration, bounds *Cohort, c *Contention) Queue[T] {
	return Queue[T]{ttl: ttl, bounds: bounds, contention: c}
}

// Idle reports whether the queue can be forgotten.
func (q *Queue[T]) Idle() bool {
	return q.phase == Idle && q.first == nil && !q.kept
}

// Phase returns the phase after the last step.
func (q *Queue[T]) Phase() Phase { return q.phase }

// Holds reports whether a lease is passed on in the queue, or was until its last
// holder left it.
func (q *Queue[T]) Holds() bool { return q.phase == Holding || q.phase == Ending }

// Rank returns the rank of the place in the store's queue. It is 0 if there is no place
// and the next one has no rank to keep.
func (q *Queue[T]) Rank() uint64 { return q.rank }

// Step applies one event and appends the actions that follow from it to out.
func (q *Queue[T]) Step(e Event[T], now clock.Instant, out []Action[T]) []Action[T] {
	switch e.Kind {
	case Arrive:
		q.contention.asked(now)
		if !q.Idle() || q.contention.busy {
			return out
		}
		q.phase = Trying
		return append(out, Action[T]{Kind: Try})
	case Join:
		out = q.join(e.Waiter, false, now, out)
		return q.askFor(e.Waiter, out)
	case TryGranted:
		return q.attach(e.Token, e.Spare, now, out)
	case TryRefused:
		return q.tryRefused(e, now, out)
	case TryFailed:
		q.phase = Idle
	case Enter:
		return q.enter(e.Rank, out)
	case Told:
		q.contended = q.contended || e.Pushed
		return q.setReason(e.Why, now, out)
	case Granted:
		return q.granted(e, now, out)
	case Refused:
		return q.refuseAll(out)
	case PlaceOver:
		q.phase, q.self = Idle, nil
	case Ended:
		e.Waiter.ended = true
		return out
	case Leave:
		out = q.leave(e.Waiter, out)
	case Unlock:
		return q.unlock(e.Passable, now, out)
	case TokensReserved:
		return q.tokensReserved(e, now, out)
	case LeaseOver:
		q.phase = Idle
		q.known = q.known || q.first != nil
		if !askedAfterLease {
			return out
		}
	case Reserve:
		return q.reserve(e, out)
	case Lapse:
		out = q.lapse(out)
	}
	return q.ask(out)
}

// ask has a goroutine of its own ask the store if anybody waits and nobody asks yet.
func (q *Queue[T]) ask(out []Action[T]) []Action[T] {
	if q.phase != Idle && (oneAsker || q.phase != Entering) || q.Foremost() == nil {
		return out
	}
	q.phase = Entering
	return append(out, Action[T]{Kind: Start})
}

// askFor is ask for w, which has just joined. If it is alone it waits at the place in
// its own goroutine, which saves a goroutine and two switches. A waiter that listens
// cannot do so: its goroutine calls a function of the user's.
func (q *Queue[T]) askFor(w *Waiter[T], out []Action[T]) []Action[T] {
	if q.phase != Idle || q.first != w || w.next != nil || w.Listens {
		return q.ask(out)
	}
	q.phase, q.self = Entering, w
	return append(out, Action[T]{Kind: EnterYourself, Waiter: w})
}

// attach begins to pass a lease on, if the terms allow it, after the grant of a token
// and of spare more for passes.
func (q *Queue[T]) attach(token fence.Token, spare int, now clock.Instant, out []Action[T]) []Action[T] {
	q.phase, q.self, q.rank, q.known, q.trouble = Idle, nil, 0, false, 0
	if q.bounds.Passes() {
		q.phase = Holding
		q.cohort = cohort{token: token, next: token + 1, spare: spare, mark: now}
		out = q.tellAll(out)
	}
	return q.ask(out)
}
