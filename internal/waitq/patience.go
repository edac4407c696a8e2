package waitq

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// setReason notes why the lock is not granted, and has the waiters told.
func (q *Queue[T]) setReason(why Reason, now clock.Instant, out []Action[T]) []Action[T] {
	q.known = true
	if why != NoAnswer {
		q.trouble = 0
	} else if q.trouble == 0 {
		q.trouble = now
	}
	return q.tellAll(out)
}

// Patience returns how long w goes on waiting for a store that gives it no answer: for
// its TTL. It returns false if there is no such trouble.
func (q *Queue[T]) Patience(w *Waiter[T], now clock.Instant) (left time.Duration, trouble bool) {
	if q.trouble == 0 || q.Holds() {
		return 0, false
	}
	return max(q.trouble, w.joined).Add(q.ttl).Sub(now), true
}
