package leasehold_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store"
)

var errWork = errors.New("the work failed")

func TestDoHoldsWhileTheFunctionRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		err := b.c.Mutex("a").Do(t.Context(), func(ctx context.Context, l *leasehold.Lease) error {
			if !b.held("a") {
				t.Error("not held in the store while fn runs")
			}
			if l.Token() == 0 || l.Owner() == "" || l.Name() != "a" {
				t.Errorf("lease of %q with token %v and owner %q, want one of a, with both", l.Name(), l.Token(), l.Owner())
			}
			_, err := b.other().Mutex("a").Try(ctx)
			var busy *leasehold.BusyError
			if !errors.As(err, &busy) || busy.Holder.Owner != l.Owner() {
				t.Errorf("another client: %v, want busy with holder %s", err, l.Owner())
			}
			return errWork
		})
		if !errors.Is(err, errWork) {
			t.Errorf("Do: %v, want fn's error", err)
		}
		if b.held("a") {
			t.Error("still held after Do")
		}
	})
}

func TestDoReleasesOnPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		func() {
			defer func() {
				if r := recover(); r != "boom" {
					t.Errorf("recovered %v, want the panic of fn", r)
				}
			}()
			b.c.Mutex("a").Do(t.Context(), func(context.Context, *leasehold.Lease) error { panic("boom") })
		}()
		if b.held("a") {
			t.Error("still held after a panic")
		}
	})
}

func TestDoReleasesWhenItsContextIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		ctx, cancel := context.WithCancel(t.Context())
		err := b.c.Mutex("a").Do(ctx, func(ctx context.Context, l *leasehold.Lease) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, context.Canceled) || errors.Is(err, leasehold.ErrLost) {
			t.Errorf("Do: %v, want cancelled and not lost", err)
		}
		if b.held("a") {
			t.Error("still held: the release died with the caller's context")
		}
	})
}

func TestDoReportsALossAfterSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.store.onRenew(all(store.ErrNotHeld))
		err := b.c.Mutex("a").Do(t.Context(), func(ctx context.Context, l *leasehold.Lease) error {
			<-ctx.Done()
			if cause := context.Cause(ctx); !errors.Is(cause, leasehold.ErrLost) {
				t.Errorf("cause %v, want ErrLost", cause)
			}
			return nil
		})
		var lost *leasehold.LostError
		if !errors.As(err, &lost) || lost.Name != "a" {
			t.Errorf("Do: %v, want a LostError for a", err)
		}
	})
}

func TestDoReportsTheReleaseError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		down := errors.New("store is down")
		b.store.onRelease(func(context.Context, store.ReleaseRequest) error { return down })
		err := b.c.Mutex("a").Do(t.Context(), func(context.Context, *leasehold.Lease) error { return errWork })
		if !errors.Is(err, errWork) || !errors.Is(err, down) {
			t.Errorf("Do: %v, want both fn's error and the release's", err)
		}
	})
}

func TestReentryThroughTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		lock := b.c.Mutex("a")
		err := lock.Do(t.Context(), func(ctx context.Context, outer *leasehold.Lease) error {
			err := lock.Do(ctx, func(ctx context.Context, inner *leasehold.Lease) error {
				if inner.Token() != outer.Token() {
					t.Errorf("the lease that re-entered has token %v, want that of the outer lease, %v", inner.Token(), outer.Token())
				}
				again, err := lock.Try(ctx)
				if err != nil {
					return err
				}
				if err := again.Release(ctx); err != nil {
					return err
				}
				if !errors.Is(again.Err(), leasehold.ErrReleased) || inner.Err() != nil {
					t.Errorf("after the innermost release: its lease %v, want ErrReleased; the one around it %v, want it held", again.Err(), inner.Err())
				}
				return nil
			})
			if err != nil || outer.Err() != nil || !b.held("a") {
				t.Errorf("the inner Do: %v; afterwards the outer lease: %v, want it held; held in the store: %v, want true", err, outer.Err(), b.held("a"))
			}
			if n := b.store.called("acquire"); n != 1 {
				t.Errorf("%d requests to the store, want 1", n)
			}
			// The context re-enters no lock of another client.
			if _, err := b.other().Mutex("a").Try(ctx); !errors.Is(err, leasehold.ErrBusy) {
				t.Errorf("another client with this context: %v, want busy", err)
			}
			return nil
		})
		if err != nil || b.held("a") {
			t.Errorf("Do: %v; held afterwards: %v, want free", err, b.held("a"))
		}
	})
}

// A lock can re-enter a lease only if it requires no more than was required when the
// lease was acquired, since nobody has checked that the lease gives more.
func TestReentryChecksRequire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		lock := b.c.Mutex("a")
		safe := lock.With(leasehold.LockOptions{Require: store.CrashSafe})
		more := lock.With(leasehold.LockOptions{Require: store.Consensus})
		err := lock.Do(t.Context(), func(ctx context.Context, _ *leasehold.Lease) error {
			for _, l := range []*leasehold.Lock{safe, more} {
				inner, err := l.Try(ctx)
				if !errors.Is(err, leasehold.ErrUnsupported) {
					t.Errorf("re-entry: %v, want ErrUnsupported: the lease was acquired without any requirement", err)
				}
				if err == nil {
					b.release(inner)
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		err = safe.Do(t.Context(), func(ctx context.Context, _ *leasehold.Lease) error {
			for _, l := range []*leasehold.Lock{lock, safe} {
				inner, err := l.Try(ctx)
				if err != nil {
					return err
				}
				b.release(inner)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// The context of Do has ended when its lease is lost, so nothing can be acquired with it.
func TestReentryIntoALostLeaseFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		lock := b.c.Mutex("a").With(leasehold.LockOptions{TTL: time.Second, NoRenew: true})
		lock.Do(t.Context(), func(ctx context.Context, l *leasehold.Lease) error {
			<-ctx.Done()
			if _, err := lock.Try(ctx); !errors.Is(err, leasehold.ErrLost) {
				t.Errorf("re-entry into a lost lease: %v, want ErrLost and no new lease", err)
			}
			return nil
		})
	})
}

// An option of a lock that comes from elsewhere can be set back to its default.
func TestOptionsCanBeUnset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		held := b.acquire(b.c.Mutex("a"))
		once := b.c.Mutex("a").With(leasehold.LockOptions{Tries: 1, NoRenew: true, MaxHold: time.Minute, Purpose: "tests"})
		if _, err := once.Acquire(t.Context()); !errors.Is(err, leasehold.ErrBusy) {
			t.Fatalf("Acquire with one try: %v, want ErrBusy", err)
		}
		lock := once.WithFunc(func(o *leasehold.LockOptions) {
			if o.Purpose != "tests" {
				t.Errorf("the options of the lock: %+v, want the purpose", o)
			}
			o.Tries, o.NoRenew, o.MaxHold = 0, false, 0
		})
		time.AfterFunc(time.Second, func() { b.release(held) })
		l, err := lock.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if err := l.Err(); err != nil {
			t.Errorf("a lease without a bound, after an hour: %v", err)
		}
		b.release(l)
		if _, err := b.other().Mutex("a").Try(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
