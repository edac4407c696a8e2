package zkstore

import (
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// A renewal with a longer TTL does not undo that another attempt of the owner has joined the lease
// meanwhile: to undo the first attempt leaves the lease to the other one.
func TestAttemptJoinsDuringARenewal(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, &Options{servers: []string{shared.Addr}})
	for range 200 {
		first := request("joining", s.limits.Tick/2)
		first.Attempt = "first"
		g := mustAcquire(t, s, first)
		longer, second := first, first
		longer.TTL += time.Millisecond
		second.Attempt = "second"
		var both sync.WaitGroup
		both.Go(func() {
			if err := s.Renew(t.Context(), []store.Lease{longer})[0]; err != nil {
				t.Errorf("renew: %v", err)
			}
		})
		both.Go(func() {
			if joined, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: second}); err != nil || joined.Token != g.Token {
				t.Errorf("join: token %v (%v), want %v", joined.Token, err, g.Token)
			}
		})
		both.Wait()
		s.Release(t.Context(), store.ReleaseRequest{Lease: first, Undo: true})
		if err := s.Renew(t.Context(), []store.Lease{second})[0]; err != nil {
			t.Fatalf("the lease ended with the attempt that was undone: %v", err)
		}
		mustRelease(t, s, second)
	}
}
