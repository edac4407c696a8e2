package gate_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

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

// A closed gate admits no call. Close returns when the last pending call has left, and all work
// that pending calls have started meanwhile, or after its limit.
func TestCloseWaitsForPendingCalls(t *testing.T) {
	for _, leaves := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			g := gate.New(store.ErrClosed)
			if err := g.Enter(); err != nil {
				t.Fatal(err)
			}
			if g.Closed() || isClosed(g.Closing()) {
				t.Error("a new gate is closed, want open")
			}
			begun, ended := time.Now(), make(chan time.Duration, 1)
			go func() {
				if first := g.Close(time.Minute, func() { g.Go(func() { time.Sleep(time.Second) }) }); !first {
					t.Error("the first Close was none")
				}
				ended <- time.Since(begun)
			}()
			synctest.Wait()
			if err := g.Enter(); err != store.ErrClosed || !g.Closed() || !isClosed(g.Closing()) {
				t.Errorf("Enter of a closed gate: %v, want ErrClosed; closed %v, closing %v, want both", err, g.Closed(), isClosed(g.Closing()))
			}
			if g.Close(time.Hour, func() { t.Error("a second Close calls last") }) {
				t.Error("a second Close was the first")
			}
			want := time.Minute
			if leaves {
				want = 3 * time.Second
				g.Go(func() { time.Sleep(want) })
				g.Leave()
			}
			if took := <-ended; took != want {
				t.Errorf("Close took %v, want %v", took, want)
			}
		})
	}
}

func TestCloseWithoutCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		if first := gate.New(store.ErrClosed).Close(time.Hour, func() {}); !first || time.Since(begun) > 0 {
			t.Errorf("Close without calls: first %v after %v, want true at once", first, time.Since(begun))
		}
	})
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
		g.Close(0, func() {})
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
