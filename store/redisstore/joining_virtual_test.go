package redisstore_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// A caller with little time does not wait for another one that waits for servers to answer
// before they join.
func TestCallerBesideServersThatJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, hosts := bubbled(t, 3)
		s := openBubbled(t, n, hosts, nil)
		for _, h := range hosts {
			h.Silence()
		}
		first := make(chan struct{})
		go func() {
			defer close(first)
			_, _ = s.Acquire(t.Context(), store.AcquireRequest{Lease: briefly("x")})
		}()
		time.Sleep(time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		_, err := s.Acquire(ctx, store.AcquireRequest{Lease: briefly("y")})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("acquire with a deadline: %v, want context.DeadlineExceeded", err)
		}
		select {
		case <-first:
			t.Error("the first caller did not wait for servers, so this test shows nothing")
		default:
		}
		<-first
	})
}
