package waitq

import (
	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
)

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
	case NewReason:
		q.contended = q.contended || e.Pushed
		return q.setReason(e.Why, now, out)
	case Granted:
		return q.granted(e, now, out)
	case Refused:
		return q.refuseAll(out)
	case PlaceOver:
		q.phase, q.self = Idle, false
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
		q.known = q.known || q.order.first != nil
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
	if q.Holds() || q.known {
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
		q.contention.busy, q.known = true, true
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
	q.trouble.note(why, now)
	return q.order.tellAll(q.trouble, out)
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
func (q *Queue[T]) granted(e Event[T], now clock.Instant, out []Action[T]) []Action[T] {
	w := q.Foremost()
	if w == nil {
		q.rank = 0
		if unwantedReleased {
			out = append(out, Action[T]{Kind: Discard})
		}
		return out
	}
	q.order.remove(w)
	q.contention.busy = q.contended
	return q.attach(e.Token, e.Spare, now, append(out, Action[T]{Kind: Give, Waiter: w}))
}

// attach begins to pass a lease on, if the terms allow it, after the grant of a token
// and of spare more for passes.
func (q *Queue[T]) attach(token fence.Token, spare int, now clock.Instant, out []Action[T]) []Action[T] {
	q.phase, q.self, q.rank, q.known, q.trouble = Idle, false, 0, false, 0
	if q.bounds.Passes() {
		q.phase = Holding
		q.cohort.begin(token, spare, now)
		out = q.order.tellAll(q.trouble, out)
	}
	return q.ask(out)
}

// unlock decides what becomes of the lease when its last holder has left it.
func (q *Queue[T]) unlock(passable bool, now clock.Instant, out []Action[T]) []Action[T] {
	q.phase = Ending
	c, w := &q.cohort, q.Foremost()
	switch {
	case w == nil || !passable:
		if q.order.first == nil { // nobody has to wait until it is released
			q.phase = Idle
		}
		return append(out, Action[T]{Kind: Release})
	case c.bounded(q.bounds, now):
		// The tokens that are left are used as well.
		return append(out, Action[T]{Kind: ReserveTokens, Token: c.last(), Count: max(1, q.bounds.MostTokens-c.spare)})
	}
	return q.pass(w, out)
}

// pass makes w the holder.
func (q *Queue[T]) pass(w *Waiter[T], out []Action[T]) []Action[T] {
	q.phase = Holding
	q.order.remove(w)
	return append(out, Action[T]{Kind: Pass, Waiter: w, Token: q.cohort.pass()})
}

// tokensReserved goes on with the tokens that the store has reserved. While nobody waits
// elsewhere, the bounds start anew.
func (q *Queue[T]) tokensReserved(e Event[T], now clock.Instant, out []Action[T]) []Action[T] {
	c, usable := &q.cohort, q.cohort.add(e.Token, e.Count)
	if usable && !e.Waiting {
		c.passes, c.mark = 0, now
	}
	w := q.Foremost()
	if !usable || w == nil || !e.Passable || c.bounded(q.bounds, now) {
		return append(out, Action[T]{Kind: Release})
	}
	return q.pass(w, out)
}

// reserve keeps a place for the next waiter. It is given up if a goroutine has asked
// the store meanwhile.
func (q *Queue[T]) reserve(e Event[T], out []Action[T]) []Action[T] {
	if q.phase != Idle && !(q.phase == Ending && e.Own) || q.reservation.exists {
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
