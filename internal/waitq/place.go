package waitq

import "github.com/leasehold-dev/leasehold/internal/clock"

// tryRefused has the goroutine whose attempt was refused wait before those that came
// meanwhile.
func (q *Queue[T]) tryRefused(e Event[T], now clock.Instant, out []Action[T]) []Action[T] {
	q.phase = Idle
	out = q.join(e.Waiter, true, now, out)
	if e.Why == Busy { // waiters are told when their position is known too
		q.contention.busy, q.known = true, true
	} else {
		out = q.setReason(e.Why, now, out)
	}
	return q.askFor(e.Waiter, out)
}

// enter takes the next place in the store's queue, if anybody wants it. The place has
// the rank of those before it that were given up while somebody waited.
func (q *Queue[T]) enter(rank uint64, out []Action[T]) []Action[T] {
	if q.self == nil && q.Foremost() == nil {
		q.phase = Idle
		return out
	}
	wait := Action[T]{Kind: Wait, Reserved: q.kept}
	switch {
	case q.kept:
		q.rank = q.takeReservation()
		q.contention.rejoined()
	case q.rank == 0 || !placeKept:
		q.rank = rank
	}
	q.phase, q.contended = Waiting, wait.Reserved
	return append(out, wait)
}

// granted gives what was granted to the waiter that is first by now. If nobody wants it
// any more it is released.
func (q *Queue[T]) granted(e Event[T], now clock.Instant, out []Action[T]) []Action[T] {
	w := q.Foremost()
	if w == nil {
		q.rank = 0
		if unwantedReleased {
			out = append(out, Action[T]{Kind: Discard})
		}
		return out
	}
	q.remove(w)
	q.contention.busy = q.contended
	return q.attach(e.Token, e.Spare, now, append(out, Action[T]{Kind: Give, Waiter: w}))
}

// Contended reports whether the store has given a reason to wait at the place.
func (q *Queue[T]) Contended() bool { return q.contended }
