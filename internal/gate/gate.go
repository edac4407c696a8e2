// Package gate counts the calls of a store that are pending, so that closing the store
// can wait for them and admit no more.
package gate

import (
	"context"
	"sync"

	"github.com/leasehold-dev/leasehold/store"
)

// Gate admits calls until it is closed. It is safe for concurrent use.
type Gate struct {
	closing context.Context
	shut    context.CancelCauseFunc

	mu    sync.Mutex
	calls int
	idle  chan struct{} // closed when the gate is closed and no call is left
}

// New returns an open gate.
func New() *Gate {
	g := &Gate{idle: make(chan struct{})}
	g.closing, g.shut = context.WithCancelCause(context.Background())
	return g
}

// Enter counts a call, which then has to Leave. After Close it returns store.ErrClosed.
func (g *Gate) Enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.Closed() {
		return store.ErrClosed
	}
	g.calls++
	return nil
}

// Stay counts one more call, closed or not. The caller is itself counted.
func (g *Gate) Stay() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls++
}

// Leave ends a call that Enter or Stay counted.
func (g *Gate) Leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls--
	if g.Closed() && g.calls == 0 {
		close(g.idle)
	}
}

// Close closes the gate. The channel idle is closed when the last pending call has left.
// The result first is false if the gate was closed already.
func (g *Gate) Close() (idle <-chan struct{}, first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.Closed() {
		return g.idle, false
	}
	g.shut(store.ErrClosed)
	if g.calls == 0 {
		close(g.idle)
	}
	return g.idle, true
}

// Closed reports whether the gate is closed.
func (g *Gate) Closed() bool { return g.closing.Err() != nil }

// Closing returns a channel that is closed with the gate.
func (g *Gate) Closing() <-chan struct{} { return g.closing.Done() }

// Until returns a context that also ends, with store.ErrClosed as its cause, when the
// gate is closed. The caller calls cancel when it needs the context no more.
func (g *Gate) Until(ctx context.Context) (until context.Context, cancel func()) {
	until, end := context.WithCancelCause(ctx)
	stop := context.AfterFunc(g.closing, func() { end(store.ErrClosed) })
	return until, func() { stop(); end(nil) }
}
