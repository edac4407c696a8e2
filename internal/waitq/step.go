package waitq

import "github.com/leasehold-dev/leasehold/internal/clock"

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
		q.asked()
	case TryRefused:
		return q.tryRefused(e, now, out)
	case TryFailed:
		q.phase = Idle
	case Enter:
		return q.enter(e.Rank, out)
	case NewReason:
		q.contended = q.contended || e.Pushed
		return q.setReason(e.Why, now, out)
	case Granted:
		return q.granted(out)
	case Refused:
		return q.refuseAll(out)
	case PlaceOver:
		q.phase, q.self = Idle, false
	case Ended:
		e.Waiter.ended = true
		return out
	case Leave:
		out = q.leave(e.Waiter, out)
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
// cannot do so: its goroutine calls the caller's OnWait.
func (q *Queue[T]) askFor(w *Waiter[T], out []Action[T]) []Action[T] {
	if q.phase != Idle || !q.order.only(w) || w.Listens {
		return q.ask(out)
	}
	q.phase, q.self = Entering, true
	return append(out, Action[T]{Kind: EnterYourself, Waiter: w})
}

// join puts w at the end of the queue, or at its head.
func (q *Queue[T]) join(w *Waiter[T], ahead bool, now clock.Instant, out []Action[T]) []Action[T] {
	if q.order.first == nil {
		q.rank = 0 // the waiter with that rank has left
	}
	w.joined = now
	q.order.add(w, ahead)
	if q.known {
		return w.tell(q.trouble, out)
	}
	return out
}

// tryRefused puts the goroutine whose attempt was refused before those that came
// meanwhile.
func (q *Queue[T]) tryRefused(e Event[T], now clock.Instant, out []Action[T]) []Action[T] {
	q.phase = Idle
	out = q.join(e.Waiter, true, now, out)
	if e.Why == Busy { // waiters are told when their position is known too
		q.contention.busy, q.known, q.refused = true, true, true
	} else {
		out = q.setReason(e.Why, now, out)
	}
	return q.askFor(e.Waiter, out)
}

// leave takes w out of the queue. The place in the store's queue outlasts it, unless w
// was the last.
func (q *Queue[T]) leave(w *Waiter[T], out []Action[T]) []Action[T] {
	wasFirst := w.prev == nil
	q.order.remove(w)
	if q.phase == Waiting && placeGivenUp && (q.order.first == nil || !placeKept && wasFirst) {
		out = append(out, Action[T]{Kind: GiveUp})
	}
	return out
}

// refuseAll ends all waits.
func (q *Queue[T]) refuseAll(out []Action[T]) []Action[T] {
	for q.order.first != nil {
		w := q.order.first
		q.order.remove(w)
		out = append(out, Action[T]{Kind: Refuse, Waiter: w})
	}
	return out
}

// setReason records why the lock is not granted, and notifies the waiters.
func (q *Queue[T]) setReason(why Reason, now clock.Instant, out []Action[T]) []Action[T] {
	q.known = true
	switch began := q.trouble.note(why, now); {
	case began && q.order.first != nil:
		return append(out, Action[T]{Kind: TellAll})
	case q.order.listening > 0:
		return append(out, Action[T]{Kind: TellListeners})
	}
	return out
}

// enter takes the next place in the store's queue, if anybody wants it. The place has
// the rank of those before it that were given up while somebody waited.
func (q *Queue[T]) enter(rank uint64, out []Action[T]) []Action[T] {
	if !q.self && q.Foremost() == nil {
		q.phase = Idle
		return out
	}
	wait := Action[T]{Kind: Wait, Reserved: q.reservation.exists}
	switch {
	case wait.Reserved:
		q.rank = q.reservation.take()
		q.contention.rejoined()
	case q.rank == 0 || !placeKept:
		q.rank = rank
	}
	q.phase, q.contended = Waiting, wait.Reserved
	return append(out, wait)
}

// granted gives the lease to the waiter that is first by now. If no waiter is left, the
// lease is released.
func (q *Queue[T]) granted(out []Action[T]) []Action[T] {
	w := q.Foremost()
	if w == nil {
		q.rank = 0
		if unwantedReleased {
			out = append(out, Action[T]{Kind: Discard})
		}
		return out
	}
	q.order.remove(w)
	q.contention.busy = q.contended || q.refused
	q.asked()
	return q.ask(append(out, Action[T]{Kind: Give, Waiter: w}))
}

// asked ends what led to a grant.
func (q *Queue[T]) asked() {
	q.phase, q.self, q.rank, q.known, q.refused, q.trouble = Idle, false, 0, false, false, 0
}

// reserve keeps a place for the next waiter. It is given up if a goroutine has asked
// the store meanwhile.
func (q *Queue[T]) reserve(e Event[T], out []Action[T]) []Action[T] {
	if q.phase != Idle || q.reservation.exists {
		return append(out, Action[T]{Kind: GiveUp, Reserved: true})
	}
	q.reservation = reservation{rank: e.Rank, exists: true}
	return out
}

// lapse gives up a place that nobody has wanted for long enough.
func (q *Queue[T]) lapse(out []Action[T]) []Action[T] {
	if !q.reservation.lapse() {
		return out
	}
	q.contention.missed()
	if returnedGivenUp {
		out = append(out, Action[T]{Kind: GiveUp, Reserved: true})
	}
	return out
}
