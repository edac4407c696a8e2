package waitq

// reservation is a place in the store's queue that was taken with the release of a
// lease. It is there for the next waiter of this process. The zero reservation is none.
type reservation struct {
	rank   uint64
	exists bool
	older  bool // it was there at a Lapse
}

// take ends the reservation and returns the rank of its place.
func (r *reservation) take() uint64 {
	r.exists = false
	return r.rank
}

// lapse ends a reservation that was there at the Lapse before, and reports whether it
// has. So one timer serves all queues.
func (r *reservation) lapse() (over bool) {
	over = r.exists && r.older
	r.exists, r.older = r.exists && !r.older, true
	return over
}
