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

// A closed gate admits no call, and is idle when the last one has left, with those that
// pending calls have started meanwhile.
func TestCloseWaitsForPendingCalls(t *testing.T) {
	g := gate.New()
	if err := g.Enter(store.ErrInvalid); err != store.ErrInvalid { // it does not count
		t.Errorf("an invalid request: %v", err)
	}
	if err := g.Enter(nil); err != nil {
		t.Fatal(err)
	}
	if g.Closed() || isClosed(g.Closing()) {
		t.Error("a new gate is closed")
	}
	idle, first := g.Close()
	if !first || !g.Closed() || !isClosed(g.Closing()) || isClosed(idle) {
		t.Errorf("after Close with one call: first %v, closed %v, idle %v", first, g.Closed(), isClosed(idle))
	}
	if err := g.Enter(nil); err != store.ErrClosed {
		t.Errorf("a closed gate admits a call: %v", err)
	}
	g.Stay()
	g.Leave()
	if isClosed(idle) {
		t.Error("idle with a call that stays")
	}
	g.Leave()
	if !isClosed(idle) {
		t.Error("not idle without a call")
	}
	if again, first := g.Close(); first || again != idle {
		t.Error("a second Close is not told that it is one")
	}
}

func TestCloseWithoutCalls(t *testing.T) {
	if idle, first := gate.New().Close(); !first || !isClosed(idle) {
		t.Error("not idle")
	}
}

// Until ends with the gate, with its parent, and with its own cancel.
func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate.New()
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
			t.Errorf("before Close: %v, %v, %v", byGate.Err(), byParent.Err(), byItself.Err())
		}
		g.Close()
		synctest.Wait()
		if err := context.Cause(byGate); !errors.Is(err, store.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		if late, cancel := g.Until(t.Context()); true {
			defer cancel()
			synctest.Wait()
			if context.Cause(late) != store.ErrClosed {
				t.Error("a context made after Close goes on")
			}
		}
	})
}
