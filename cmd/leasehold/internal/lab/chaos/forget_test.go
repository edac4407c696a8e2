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

// One restart within a lease, of a node that is in its majority. With its data
// the node goes on excluding others. Without them it is in quarantine. Were it
// not, it would be part of the next majority.
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
			// From here on it does not get through to two of the nodes.
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
				t.Fatalf("the first lease is over: %v", held.Err())
			}
			if excluded := errors.Is(err, leasehold.ErrBusy) || errors.Is(err, leasehold.ErrQuorum); excluded != c.excluded || excluded != (err != nil) {
				t.Errorf("the second client: %v; want it to be excluded: %v", err, c.excluded)
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

// answered is how many nodes said that somebody else has the lock, or that they
// cannot know.
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
