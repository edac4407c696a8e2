package waitq

import (
	"iter"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Waiter is one goroutine in a queue.
type Waiter[T any] struct {
	// Of is what the driver knows the waiter by.
	Of T
	// Listens says that the waiter reads every reason, and not only those that try its
	// patience.
	Listens bool

	ended      bool // it is about to leave
	joined     clock.Instant
	prev, next *Waiter[T]
}

// Waiters returns the waiters in their order.
func (q *Queue[T]) Waiters() iter.Seq[*Waiter[T]] {
	return func(yield func(*Waiter[T]) bool) {
		for w := q.first; w != nil && yield(w); {
			w = w.next
		}
	}
}

// Len returns how many wait.
func (q *Queue[T]) Len() (n int) {
	for w := q.first; w != nil; w = w.next {
		n++
	}
	return n
}

// Foremost returns the first waiter that is not about to leave, or nil.
func (q *Queue[T]) Foremost() *Waiter[T] {
	w := q.first
	for endedPassedOver && w != nil && w.ended {
		w = w.next
	}
	return w
}

// Ahead returns how many waiters of the queue come before w.
func (q *Queue[T]) Ahead(w *Waiter[T]) (n int) {
	for o := w.prev; o != nil; o = o.prev {
		n++
	}
	return n
}

// join puts w at the end of the queue, or before all others.
func (q *Queue[T]) join(w *Waiter[T], ahead bool, now clock.Instant, out []Action[T]) []Action[T] {
	w.joined = now
	switch {
	case q.first == nil:
		q.first, q.last = w, w
		q.rank = 0 // the waiter with that rank has left
	case ahead:
		w.next, q.first.prev, q.first = q.first, w, w
	default:
		w.prev, q.last.next, q.last = q.last, w, w
	}
	if q.Holds() || q.known {
		return q.tell(w, out)
	}
	return out
}

// remove takes w out of the queue.
func (q *Queue[T]) remove(w *Waiter[T]) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		q.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		q.last = w.prev
	}
	w.prev, w.next = nil, nil
}

// leave takes w out of the queue. The place in the store's queue outlasts it, unless w
// was the last.
func (q *Queue[T]) leave(w *Waiter[T], out []Action[T]) []Action[T] {
	wasFirst := w.prev == nil
	q.remove(w)
	if q.phase == Waiting && placeGivenUp && (q.first == nil || !placeKept && wasFirst) {
		out = append(out, Action[T]{Kind: GiveUp})
	}
	return out
}

// refuseAll ends all waits.
func (q *Queue[T]) refuseAll(out []Action[T]) []Action[T] {
	for q.first != nil {
		w := q.first
		q.remove(w)
		out = append(out, Action[T]{Kind: Refuse, Waiter: w})
	}
	return out
}

// tell has w read the reason again, if w makes use of it.
func (q *Queue[T]) tell(w *Waiter[T], out []Action[T]) []Action[T] {
	if w.Listens || q.trouble != 0 {
		return append(out, Action[T]{Kind: Tell, Waiter: w})
	}
	return out
}

func (q *Queue[T]) tellAll(out []Action[T]) []Action[T] {
	for w := q.first; w != nil; w = w.next {
		out = q.tell(w, out)
	}
	return out
}
