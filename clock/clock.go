// Package clock has the type of the clocks that count how long leases are valid. A client
// and a store count by the machine's own clock, unless their options have another one, for
// simulations and tests. In a bubble of testing/synctest this one is enough:
//
//	began := time.Now()
//	virtual := clock.Func(func() clock.Instant { return clock.Instant(1 + time.Since(began)) })
package clock

import (
	"math"
	"time"
)

// Instant is a moment on one Clock, in nanoseconds since that clock's own epoch, which lies
// in its past: the zero Instant means "never". Only differences between Instants of the same
// clock have a meaning.
type Instant int64

// Add returns the instant d later, or the last possible one on overflow: a d of
// centuries, by which some callers mean "for ever", must not give an instant in
// the past.
func (i Instant) Add(d time.Duration) Instant {
	if t := i + Instant(d); d < 0 || t >= i {
		return t
	}
	return math.MaxInt64
}

// Sub returns the time from j to i.
func (i Instant) Sub(j Instant) time.Duration { return time.Duration(i - j) }

// Clock reads elapsed time. Its method must be safe for concurrent use and always return,
// without blocking and without using a client or a store. Its instants never go back.
type Clock interface {
	Now() Instant
}

// Func turns a function into a Clock.
type Func func() Instant

// Now implements Clock.
func (f Func) Now() Instant { return f() }
