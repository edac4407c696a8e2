package clock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

type bubbleKey struct{}

// A bounded context ends at its deadline, and not with the context whose values it has.
func TestBoundEndsAtItsDeadlineOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, cancel := context.WithCancel(context.WithValue(t.Context(), bubbleKey{}, "kept"))
		ctx, stop := clock.Bound(parent, time.Minute)
		defer stop()
		child, stopChild := context.WithCancel(ctx)
		defer stopChild()
		cancel()
		synctest.Wait()
		if cause := context.Cause(ctx); cause != nil {
			t.Errorf("the cause is %v before the end", cause)
		}
		if ctx.Err() != nil || child.Err() != nil || ctx.Value(bubbleKey{}) != "kept" || child.Value(bubbleKey{}) != "kept" {
			t.Errorf("after the parent has ended: errors %v and %v, values %v and %v", ctx.Err(), child.Err(), ctx.Value(bubbleKey{}), child.Value(bubbleKey{}))
		}
		began := time.Now()
		<-child.Done()
		if took := time.Since(began); took != time.Minute || !errors.Is(ctx.Err(), context.DeadlineExceeded) || !errors.Is(child.Err(), context.DeadlineExceeded) {
			t.Errorf("ended after %v with %v and %v, want 1m and DeadlineExceeded", took, ctx.Err(), child.Err())
		}
	})
}

// Err is right even if nobody has asked for Done before, and Done agrees with it.
func TestBoundTellsItsEndWithoutATimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late, stop := clock.Bound(t.Context(), time.Second)
		defer stop()
		if at, ok := late.Deadline(); !ok || time.Until(at) != time.Second || late.Err() != nil {
			t.Errorf("Deadline in %v (%v), Err %v", time.Until(at), ok, late.Err())
		}
		time.Sleep(time.Second)
		if !errors.Is(late.Err(), context.DeadlineExceeded) {
			t.Errorf("Err after the deadline: %v", late.Err())
		}
		<-late.Done()

		for _, asked := range []bool{false, true} {
			ctx, stop := clock.Bound(t.Context(), time.Second)
			if asked {
				ctx.Done()
			}
			stop()
			if <-ctx.Done(); !errors.Is(ctx.Err(), context.Canceled) {
				t.Errorf("Err after stop (asked for Done before: %v): %v", asked, ctx.Err())
			}
		}
	})
}

// The first error of a bounded context is its last.
func TestBoundKeepsItsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late, stop := clock.Bound(t.Context(), time.Second)
		time.Sleep(time.Second)
		if err := late.Err(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Err after the deadline: %v", err)
		}
		if stop(); !errors.Is(late.Err(), context.DeadlineExceeded) {
			t.Errorf("Err after the deadline and stop: %v", late.Err())
		}
		early, stop := clock.Bound(t.Context(), time.Second)
		stop()
		time.Sleep(time.Second)
		if <-early.Done(); !errors.Is(early.Err(), context.Canceled) {
			t.Errorf("Err after stop and the deadline: %v", early.Err())
		}
	})
}

// A caller that waits for less than the rest of a bounded context does not have to watch it.
func TestDoneWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := clock.Bound(t.Context(), time.Second)
		defer stop()
		if clock.DoneWithin(ctx, time.Second-1) != nil {
			t.Error("DoneWithin watches a context that ends later")
		}
		<-clock.DoneWithin(ctx, time.Second)
		other, cancel := context.WithTimeout(t.Context(), time.Minute)
		cancel()
		<-clock.DoneWithin(other, time.Second)
	})
}
