package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// pending is an engine whose Waits last until their context has ended, and a second longer.
type pending struct {
	untouchable
	calls, late int // late: calls that ended after the engine was closed
	closed      int
}

func (e *pending) Wait(ctx context.Context, r store.WaitRequest, _ func(error)) (store.Grant, error) {
	e.calls++
	<-ctx.Done()
	time.Sleep(time.Second)
	e.late += e.closed
	return store.Grant{}, fmt.Errorf("wait for %q: %w", r.Name, ctx.Err())
}

func (e *pending) Close() error { e.closed++; return nil }

// Close ends the contexts of pending calls, and closes the engine when they have returned. After
// that, no call reaches it.
func TestCloseEndsPendingCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &pending{}
		s := store.New(e)
		result := make(chan error, 1)
		go func() {
			_, err := s.Wait(t.Context(), store.WaitRequest{Lease: lease()}, nil)
			result <- err
		}()
		synctest.Wait()
		for range 2 {
			if err := s.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}
		if err := <-result; err != store.ErrClosed {
			t.Errorf("a pending wait ended with %v, want ErrClosed", err)
		}
		if e.calls != 1 || e.late != 0 || e.closed != 1 {
			t.Errorf("the engine had %d calls, %d of them after the first of %d Closes; want 1, 0 and 1", e.calls, e.late, e.closed)
		}
		_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: lease()})
		for what, err := range map[string]error{
			"acquire": err,
			"renew":   s.Renew(t.Context(), []store.Lease{lease()})[0],
			"release": s.Release(t.Context(), store.ReleaseRequest{Lease: lease()}),
		} {
			if !errors.Is(err, store.ErrClosed) {
				t.Errorf("%s after Close: %v, want ErrClosed", what, err)
			}
		}
	})
}

// A call whose own context ends is not taken for one that Close has ended.
func TestEndedContextIsNotClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store.New(&pending{})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := s.Wait(ctx, store.WaitRequest{Lease: lease()}, nil); !errors.Is(err, context.Canceled) || errors.Is(err, store.ErrClosed) {
			t.Errorf("a cancelled wait ended with %v, want Canceled", err)
		}
		s.Close()
	})
}

// No call but Wait reaches the engine with a context that has ended.
func TestEndedContextReachesNoEngine(t *testing.T) {
	s := store.New(untouchable{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, acquired := s.Acquire(ctx, store.AcquireRequest{Lease: lease()})
	_, rejoined := s.ReleaseAndRejoin(ctx, store.ReleaseRequest{Lease: lease()}, store.WaitRequest{Lease: lease()})
	_, broke := s.BreakLease(ctx, store.BreakRequest{Name: "a", Owner: "b", Token: 1})
	_, downgraded := s.Downgrade(ctx, lease())
	_, inspected := s.Inspect(ctx, "a")
	_, listed := s.List(ctx, "")
	for what, err := range map[string]error{
		"acquire": acquired, "release and rejoin": rejoined, "break": broke, "downgrade": downgraded, "inspect": inspected, "list": listed,
		"renew":   s.Renew(ctx, []store.Lease{lease(), lease()})[1],
		"release": s.Release(ctx, store.ReleaseRequest{Lease: lease()}),
		"resize":  s.Resize(ctx, "a", store.Semaphore(2), store.Semaphore(3)),
	} {
		if err != context.Canceled {
			t.Errorf("%s with an ended context: %v, want %v", what, err, context.Canceled)
		}
	}
}

// limited is an engine whose calls last until their contexts have ended.
type limited struct{ untouchable }

func (limited) Acquire(ctx context.Context, _ store.AcquireRequest) (store.Grant, error) {
	<-ctx.Done()
	return store.Grant{}, context.Cause(ctx)
}

func (limited) Wait(ctx context.Context, _ store.WaitRequest, _ func(error)) (store.Grant, error) {
	<-ctx.Done()
	return store.Grant{}, context.Cause(ctx)
}

// Caps.Timeout bounds every call but Wait.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store.New(limited{untouchable{caps: store.Caps{Timeout: time.Second}}})
		began := time.Now()
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: lease()}); err != store.ErrTimeLimit || time.Since(began) != time.Second {
			t.Errorf("an acquire ended after %v with %v, want 1s and ErrTimeLimit", time.Since(began), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := s.Wait(ctx, store.WaitRequest{Lease: lease()}, nil); err != context.DeadlineExceeded || time.Since(began) != time.Minute+time.Second {
			t.Errorf("a wait ended after %v with %v, want a minute more and the end of its context", time.Since(began), err)
		}
	})
}

// granting is an engine that grants everything. It names the lease if it has one to name.
type granting struct {
	untouchable
	names    store.Lease
	released *store.ReleaseRequest
}

func (e granting) Acquire(context.Context, store.AcquireRequest) (store.Grant, error) {
	return store.Grant{Lease: e.names, Token: 1}, nil
}

func (e granting) Downgrade(context.Context, store.Lease) (store.Grant, error) {
	return store.Grant{Token: 2}, nil
}

func (e granting) Release(_ context.Context, r store.ReleaseRequest) error {
	*e.released = r
	return nil
}

// A grant has the lease of the request, unless the engine names another. A release of a lease whose
// request was repeated says so.
func TestGrantHasItsLease(t *testing.T) {
	asked, named, released := lease(), lease(), store.ReleaseRequest{}
	named.Repeated = true
	for _, names := range []store.Lease{{}, named} {
		s := store.New(granting{names: names, released: &released})
		want := names
		if names.Owner == "" {
			want = asked
		}
		g, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: asked})
		if err != nil || g.Lease.Owner != want.Owner {
			t.Fatalf("granted %+v, %v, want the lease of %s", g, err, want.Owner)
		}
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: g.Lease}); err != nil || released.Owner != want.Owner || released.Renewed != want.Repeated {
			t.Errorf("released %+v, %v, want Renewed %v", released, err, want.Repeated)
		}
		if g, err := s.Downgrade(t.Context(), asked); err != nil || g.Lease.Weight != 1 || g.Lease.Owner != asked.Owner {
			t.Errorf("downgraded to %+v, %v, want the lease asked for with weight 1", g, err)
		}
	}
}
