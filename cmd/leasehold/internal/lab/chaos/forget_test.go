package chaos

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// A node of the majority of a lease restarts. With its data it goes on excluding others.
// Without them it is in quarantine: else it would be part of the next majority.
func TestRestartWithinALease(t *testing.T) {
	for _, c := range []struct {
		name     string
		settings []string
		declared bool // to have forgotten nothing
		excluded bool
	}{
		{"with its data", Durable, false, true},
		{"without", nil, false, true},
		{"without, and trusted", nil, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cluster := Start(t, nodes, c.settings...)
			first := lock(t, cluster.URL(patient))
			// Two of the nodes do not get the request, so the other three are the majority.
			for _, n := range cluster.Nodes[3:] {
				n.Proxy.Blackhole()
			}
			held, err := first.Try(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := cluster.Nodes[2].Server.Restart(); err != nil {
				t.Fatal(err)
			}
			if c.declared {
				cluster.Nodes[2].Server.Declare()
			}
			for _, n := range cluster.Nodes[3:] {
				n.Proxy.Pass() // what was swallowed never arrives
			}
			second := lock(t, cluster.URL(patient))
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			also, err := second.Try(ctx)
			for err != nil && answered(err) <= nodes/2 && ctx.Err() == nil { // a majority has not decided
				clock.Sleep(ctx, 10*time.Millisecond)
				also, err = second.Try(ctx)
			}
			if held.Err() != nil {
				t.Fatalf("the first lease is over: %v, want it valid until the end", held.Err())
			}
			if excluded := errors.Is(err, leasehold.ErrBusy) || errors.Is(err, leasehold.ErrQuorum); excluded != c.excluded || excluded != (err != nil) {
				t.Errorf("the second client: %v; want it excluded: %v", err, c.excluded)
			}
			for _, l := range []*leasehold.Lease{held, also} {
				if l != nil {
					l.Release(context.Background())
				}
			}
		})
	}
}

// patient is a client that gives up on no node that may answer at all.
var patient = url.Values{"node_timeout": {"10s"}, "connect_timeout": {"10s"}}

func lock(t *testing.T, where string) *leasehold.Lock {
	t.Helper()
	st, err := redisstore.Open(t.Context(), where, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return leasehold.New(st, nil).Mutex("a").With(leasehold.LockOptions{TTL: time.Minute, NoRenew: true})
}

// answered returns how many nodes answered that another client has the lock, or that they
// are in quarantine.
func answered(err error) int {
	var busy *leasehold.BusyError
	var quorum *leasehold.QuorumError
	nodes := []store.NodeOutcome(nil)
	switch {
	case errors.As(err, &busy):
		nodes = busy.Nodes
	case errors.As(err, &quorum):
		nodes = quorum.Nodes
	}
	n := 0
	for _, o := range nodes {
		if o.Outcome == store.Taken || o.Outcome == store.Quarantined {
			n++
		}
	}
	return n
}
