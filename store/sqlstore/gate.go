package sqlstore

import (
	"context"
	"sync"

	"github.com/leasehold-dev/leasehold/store"
)

// gate counts pending calls, and admits none after it was closed.
type gate struct {
	// closing ends when the gate is closed.
	closing context.Context
	shut    context.CancelCauseFunc

	mu    sync.Mutex
	calls int
	idle  chan struct{} // closed when the gate is closed and no call is left
}

func newGate() *gate {
	g := &gate{idle: make(chan struct{})}
	g.closing, g.shut = context.WithCancelCause(context.Background())
	return g
}

func (g *gate) enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closing.Err() != nil {
		return store.ErrClosed
	}
	g.calls++
	return nil
}

// stay counts one more call. The caller is itself counted.
func (g *gate) stay() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls++
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls--
	if g.closing.Err() != nil && g.calls == 0 {
		close(g.idle)
	}
}

// close closes the gate. idle is closed when the last pending call has left.
func (g *gate) close() (idle <-chan struct{}, first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closing.Err() != nil {
		return g.idle, false
	}
	g.shut(store.ErrClosed)
	if g.calls == 0 {
		close(g.idle)
	}
	return g.idle, true
}

// until returns a context that also ends, with store.ErrClosed as its cause, when
// the gate is closed.
func (g *gate) until(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(g.closing, func() { cancel(store.ErrClosed) })
	return ctx, func() { stop(); cancel(nil) }
}
