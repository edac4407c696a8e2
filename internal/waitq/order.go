package waitq

import (
	"iter"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Waiter is one goroutine in a queue.
type Waiter[T any] struct {
	// Of is the driver's value for the waiter.
	Of T
	// Listens says that the waiter reads every reason. Other waiters read only those
	// that can end their patience.
	Listens bool

	ended      bool // it is about to leave
	joined     clock.Instant
	prev, next *Waiter[T]
}

// order is the waiters of a queue in their order.
type order[T any] struct{ first, last *Waiter[T] }

// add puts w at the end of the queue, or before all others.
func (l *order[T]) add(w *Waiter[T], ahead bool) {
	switch {
	case l.first == nil:
		l.first, l.last = w, w
	case ahead:
		w.next, l.first.prev, l.first = l.first, w, w
	default:
		w.prev, l.last.next, l.last = l.last, w, w
	}
}

func (l *order[T]) remove(w *Waiter[T]) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		l.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		l.last = w.prev
	}
	w.prev, w.next = nil, nil
}

// Foremost returns the first waiter that is not about to leave, or nil.
func (l *order[T]) Foremost() *Waiter[T] {
	w := l.first
	for endedPassedOver && w != nil && w.ended {
		w = w.next
	}
	return w
}

// only reports whether w is the only waiter.
func (l *order[T]) only(w *Waiter[T]) bool { return l.first == w && l.last == w }

// Waiters returns the waiters in their order.
func (l *order[T]) Waiters() iter.Seq[*Waiter[T]] {
	return func(yield func(*Waiter[T]) bool) {
		for w := l.first; w != nil && yield(w); {
			w = w.next
		}
	}
}

// Len returns the number of waiters.
func (l *order[T]) Len() (n int) {
	for w := l.first; w != nil; w = w.next {
		n++
	}
	return n
}

// Ahead returns how many waiters come before w.
func (l *order[T]) Ahead(w *Waiter[T]) (n int) {
	for o := w.prev; o != nil; o = o.prev {
		n++
	}
	return n
}

// tellAll has all waiters read the reason again that make use of it.
func (l *order[T]) tellAll(t trouble, out []Action[T]) []Action[T] {
	for w := l.first; w != nil; w = w.next {
		out = w.tell(t, out)
	}
	return out
}

// tell has w read the reason again, if w makes use of it.
func (w *Waiter[T]) tell(t trouble, out []Action[T]) []Action[T] {
	if w.Listens || t != 0 {
		return append(out, Action[T]{Kind: Tell, Waiter: w})
	}
	return out
}
