package gate_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/leasehold-dev/leasehold/internal/gate"
	"github.com/leasehold-dev/leasehold/store"
)

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// A closed gate admits no call. It is idle when the last pending call has left, and all work
// that pending calls have started meanwhile.
func TestCloseWaitsForPendingCalls(t *testing.T) {
	g := gate.New(store.ErrClosed)
	if err := g.Enter(); err != nil {
		t.Fatal(err)
	}
	if g.Closed() || isClosed(g.Closing()) {
		t.Error("a new gate is closed, want open")
	}
	idle, first := g.Close()
	if !first || !g.Closed() || !isClosed(g.Closing()) || isClosed(idle) {
		t.Errorf("after Close with one call: first %v, closed %v, closing %v, want all true; idle %v, want false", first, g.Closed(), isClosed(g.Closing()), isClosed(idle))
	}
	if err := g.Enter(); err != store.ErrClosed {
		t.Errorf("Enter of a closed gate: %v, want ErrClosed", err)
	}
	g.Stay()
	g.Leave()
	if isClosed(idle) {
		t.Error("idle although a call stays")
	}
	g.Leave()
	if !isClosed(idle) {
		t.Error("not idle although the last call has left")
	}
	if again, first := g.Close(); first || again != idle {
		t.Errorf("a second Close: first %v, want false; the same channel %v, want true", first, again == idle)
	}
}

func TestCloseWithoutCalls(t *testing.T) {
	if idle, first := gate.New(store.ErrClosed).Close(); !first || !isClosed(idle) {
		t.Errorf("Close without calls: first %v, idle %v, want both", first, isClosed(idle))
	}
}

// A context of Until ends with the gate, with its parent, and by its own cancel function.
func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate.New(store.ErrClosed)
		parent, end := context.WithCancel(t.Context())
		byGate, cancel := g.Until(t.Context())
		defer cancel()
		byParent, cancelToo := g.Until(parent)
		defer cancelToo()
		byItself, cancelItself := g.Until(t.Context())
		cancelItself()
		end()
		synctest.Wait()
		if byGate.Err() != nil || byParent.Err() == nil || byItself.Err() == nil {
			t.Errorf("before Close: %v, want none; after the end of the parent %v and after cancel %v, want errors", byGate.Err(), byParent.Err(), byItself.Err())
		}
		g.Close()
		synctest.Wait()
		if err := context.Cause(byGate); !errors.Is(err, store.ErrClosed) {
			t.Errorf("after Close: cause %v, want ErrClosed", err)
		}
		if late, cancel := g.Until(t.Context()); true {
			defer cancel()
			synctest.Wait()
			if err := context.Cause(late); err != store.ErrClosed {
				t.Errorf("a context made after Close: cause %v, want ErrClosed", err)
			}
		}
	})
}
