package redisstore_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
)

// With a counter far ahead of the clock, as after the clock was set back, each grant has the next
// token, and servers with smaller counters are raised to it.
func TestTokensGoOnAfterAStepBack(t *testing.T) {
	servers := redistest.StartN(t, 3)
	s := open(t, addrs(servers), nil)
	last := fence.Token(time.Now().Add(time.Hour).UnixMicro())
	for _, server := range servers[:2] {
		server.Text(t, "SET", "{a}:token", strconv.FormatUint(uint64(last), 10))
	}
	for range 3 {
		held := request("a")
		g, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: held})
		if err != nil || g.Token != last+1 {
			t.Fatalf("granted %+v (%v) after %v, want the next token", g, err, last)
		}
		last = g.Token
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: held}); err != nil {
			t.Fatal(err)
		}
		eventually.True(t, "every server has released it", noLock(t, servers, "a"))
	}
}
