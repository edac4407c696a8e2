package redis_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/redistest"
)

// Who waits asks for nothing but to refresh the place.
func TestWaitersDoNotPoll(t *testing.T) {
	const waiters, every = 100, time.Second
	servers := redistest.StartN(t, 1)
	s := open(t, addrs(servers), nil)
	takes(t, s, servers, patientWaiter("stock"))
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for range waiters {
		r := waiter("stock")
		r.TTL = 3 * every
		all.Go(func() { s.Wait(ctx, r, nil) })
		eventually(t, "it has a place", func() bool { return placed(t, servers[0], r) })
	}
	start, before := time.Now(), calls(t, servers[0], "evalsha")
	eventually(t, "each has refreshed its place some times", func() bool { return calls(t, servers[0], "evalsha")-before >= 3*waiters })
	if n, most := calls(t, servers[0], "evalsha")-before, int(waiters*(time.Since(start)/every+2)); n > most {
		t.Errorf("%d calls in %v, want at most %d", n, time.Since(start), most)
	}
	cancel()
	all.Wait()
}

// A place is refreshed without a look whether the connection is still there: if it is not,
// that shows by it, and the place lasts until the next time.
func TestPlacesAreRefreshedWithoutProof(t *testing.T) {
	const every = 1200 * time.Millisecond // longer than a connection is trusted without an answer
	servers := redistest.StartN(t, 1)
	s := open(t, addrs(servers), nil)
	takes(t, s, servers, patientWaiter("stock"))
	r := waiter("stock")
	r.TTL = 3 * every
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { s.Wait(ctx, r, nil); close(done) }()
	eventually(t, "it has a place", func() bool { return placed(t, servers[0], r) })
	before, proofs := calls(t, servers[0], "evalsha"), calls(t, servers[0], "ping")
	eventually(t, "the place is refreshed", func() bool { return calls(t, servers[0], "evalsha")-before >= 2 })
	if n := calls(t, servers[0], "ping") - proofs; n > 0 {
		t.Errorf("the connection was tried %d times", n)
	}
	cancel()
	<-done
}
