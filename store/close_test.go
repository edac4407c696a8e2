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
