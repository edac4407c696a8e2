package waitq

// reservation is a place in the store's queue that was taken with the release of a
// lease, and that no waiter has taken over yet.
type reservation struct {
	there bool
	old   bool // a Lapse has found it once already
	rank  uint64
}

// RejoinWanted reports whether the place for the next wait should be taken with the
// release of a lease: a goroutine waits, or will soon. attached says that the lease is
// the one that the queue passed on.
func (q *Queue[T]) RejoinWanted(attached bool) bool {
	return attached && q.first != nil || q.contention.Expected()
}

// Reserved reports whether a place is reserved.
func (q *Queue[T]) Reserved() bool { return q.reservation.there }

// reserve keeps a place for the next waiter. It is given up if a goroutine has asked
// the store meanwhile.
func (q *Queue[T]) reserve(e Event[T], out []Action[T]) []Action[T] {
	if q.phase != Idle && !(q.phase == Ending && e.Own) || q.reservation.there {
		return append(out, Action[T]{Kind: GiveUp, Reserved: true})
	}
	q.reservation = reservation{there: true, rank: e.Rank}
	return out
}

// takeReservation ends the reservation and returns the rank of its place.
func (q *Queue[T]) takeReservation() uint64 {
	rank := q.reservation.rank
	q.reservation = reservation{}
	return rank
}

// lapse gives up a place that nobody has wanted since the Lapse before. So one timer
// serves all queues.
func (q *Queue[T]) lapse(out []Action[T]) []Action[T] {
	switch {
	case !q.reservation.there:
	case !q.reservation.old:
		q.reservation.old = true
	default:
		q.takeReservation()
		q.contention.missed()
		if returnedGivenUp {
			out = append(out, Action[T]{Kind: GiveUp, Reserved: true})
		}
	}
	return out
}
