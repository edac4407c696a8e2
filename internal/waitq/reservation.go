package waitq

// A place in the store's queue can be taken with the release of a lease. It is reserved
// for the next waiter of this process.

// RejoinWanted reports whether the place for the next wait should be taken with the
// release of a lease: a goroutine waits, or will soon. attached says that the lease is
// the one that the queue passed on.
func (q *Queue[T]) RejoinWanted(attached bool) bool {
	return attached && q.first != nil || q.contention.Expected()
}

// Reserved reports whether a place is reserved.
func (q *Queue[T]) Reserved() bool { return q.kept }

// reserve keeps a place for the next waiter. It is given up if a goroutine has asked
// the store meanwhile.
func (q *Queue[T]) reserve(e Event[T], out []Action[T]) []Action[T] {
	if q.phase != Idle && !(q.phase == Ending && e.Own) || q.kept {
		return append(out, Action[T]{Kind: GiveUp, Reserved: true})
	}
	q.kept, q.old, q.keptRank = true, false, e.Rank
	return out
}

// takeReservation ends the reservation and returns the rank of its place.
func (q *Queue[T]) takeReservation() uint64 {
	q.kept = false
	return q.keptRank
}

// lapse gives up a place that nobody has wanted since the Lapse before. So one timer
// serves all queues.
func (q *Queue[T]) lapse(out []Action[T]) []Action[T] {
	switch {
	case !q.kept:
	case !q.old:
		q.old = true
	default:
		q.takeReservation()
		q.contention.missed()
		if returnedGivenUp {
			out = append(out, Action[T]{Kind: GiveUp, Reserved: true})
		}
	}
	return out
}
