// Package gate counts what is under way, so that closing can wait for it and admit no more.
package gate

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Gate admits calls until it is closed. It is safe for concurrent use.
type Gate struct {
	why     error
	closing context.Context
	shut    context.CancelCauseFunc

	calls atomic.Int64 // less than 0: the gate is closed
	once  sync.Once
	idle  chan struct{} // closed when the gate is closed and no call is left
}

// New returns an open gate. why is the error of calls after Close.
func New(why error) *Gate {
	g := &Gate{why: why, idle: make(chan struct{})}
	g.closing, g.shut = context.WithCancelCause(context.Background())
	return g
}

// closed is what Close adds to the number of calls.
const closed = -1 << 62

// Enter counts a call, which then has to Leave. After Close it returns the gate's error.
func (g *Gate) Enter() error {
	if g.calls.Add(1) < 0 {
		g.Leave()
		return g.why
	}
	return nil
}

// Stay counts one more call, closed or not. The caller is itself counted.
func (g *Gate) Stay() { g.calls.Add(1) }

// Go calls f on a goroutine of its own, as one more call. The caller is itself counted.
func (g *Gate) Go(f func()) {
	g.Stay()
	go func() {
		defer g.Leave()
		f()
	}()
}

// Leave ends a call that Enter or Stay counted.
func (g *Gate) Leave() {
	if g.calls.Add(-1) == closed {
		g.once.Do(func() { close(g.idle) })
	}
}

// Close closes the gate and calls last, which may start clean-up with Go. It then waits until the last
// pending call has left, for limit at most. If the gate was closed already, Close does nothing, and first
// is false.
func (g *Gate) Close(limit time.Duration, last func()) (first bool) {
	for {
		n := g.calls.Load()
		if n < 0 {
			return false
		}
		if g.calls.CompareAndSwap(n, n+1+closed) { // Close is itself counted until last has returned
			break
		}
	}
	g.shut(g.why)
	last()
	g.Leave()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-g.idle:
	case <-timer.C:
	}
	return true
}

// Closed reports whether the gate is closed.
func (g *Gate) Closed() bool { return g.calls.Load() < 0 }

// Closing returns a channel that is closed with the gate.
func (g *Gate) Closing() <-chan struct{} { return g.closing.Done() }

// Until returns a context that also ends, with the gate's error as its cause, when the
// gate is closed. The caller calls cancel when it needs the context no more.
func (g *Gate) Until(ctx context.Context) (until context.Context, cancel func()) {
	until, end := context.WithCancelCause(ctx)
	stop := context.AfterFunc(g.closing, func() { end(g.why) })
	return until, func() { stop(); end(nil) }
}
