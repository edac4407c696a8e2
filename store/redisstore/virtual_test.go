package redisstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/testenv/simnet"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
	"github.com/leasehold-dev/leasehold/store/storetest"
)

// bubbled returns a network of servers in the bubble of the test. It sleeps until 2026 first:
// bubbles begin in 2000, when the time in milliseconds has fewer digits than the scripts expect.
func bubbled(t *testing.T, nodes int) (*simnet.Network, []*simnet.Host) {
	t.Helper()
	time.Sleep(time.Until(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
	n := &simnet.Network{Delay: 200 * time.Microsecond}
	return n, n.StartN(nodes)
}

// openBubbled opens a store on a bubble's servers, with its clock, and closes it at the end of the
// test. A nil o stands for the defaults. Without a Dial, the store dials in the network.
func openBubbled(t *testing.T, n *simnet.Network, hosts []*simnet.Host, o *redisstore.Options) *store.Store {
	t.Helper()
	if o == nil {
		o = &redisstore.Options{}
	}
	if o.Dial == nil {
		o.Dial = n.Dial
	}
	o.Clock = clock.Func(func() clock.Instant { return clock.Instant(time.Now().UnixNano()) })
	s, err := redisstore.Open(t.Context(), "redis://"+strings.Join(addrs(hosts), ","), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// The store keeps the contract of package store in virtual time, on servers that run the scripts.
// TestConformanceOnServers has three real servers.
func TestConformance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		nodes int
	}{{"OneNode", 1}, {"FourNodes", 4}} {
		t.Run(c.name, func(t *testing.T) {
			var network *simnet.Network
			var hosts []*simnet.Host
			first := func(t *testing.T) *store.Store {
				network, hosts = bubbled(t, c.nodes)
				return openBubbled(t, network, hosts, nil)
			}
			second := func(t *testing.T) *store.Store { return openBubbled(t, network, hosts, nil) }
			storetest.Run(t, first, storetest.Options{Second: second, Virtual: true})
		})
	}
}
