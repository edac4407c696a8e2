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

// order is the waiters of a queue in their order. None of its methods takes longer if there are
// more of them.
type order[T any] struct {
	first, last *Waiter[T]
	live        *Waiter[T] // all before it are about to leave
	count       int
	listening   int // waiters that listen
}

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
	if ahead || l.live == nil {
		l.live = w
	}
	l.count++
	if w.Listens {
		l.listening++
	}
}

func (l *order[T]) remove(w *Waiter[T]) {
	if l.live == w {
		l.live = w.next
	}
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
	l.count--
	if w.Listens {
		l.listening--
	}
}

// Foremost returns the first waiter that is not about to leave, or nil.
func (l *order[T]) Foremost() *Waiter[T] {
	if !endedPassedOver {
		return l.first
	}
	for l.live != nil && l.live.ended { // once for each waiter
		l.live = l.live.next
	}
	return l.live
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
func (l *order[T]) Len() int { return l.count }

// tell has w read the reason again, if w makes use of it.
func (w *Waiter[T]) tell(t trouble, out []Action[T]) []Action[T] {
	if w.Listens || t != 0 {
		return append(out, Action[T]{Kind: Tell, Waiter: w})
	}
	return out
}
