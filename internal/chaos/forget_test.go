package chaos

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redis"
)

// One restart within a lease, of a node that is in its majority. With its data
// the node goes on excluding others. Without them it is part of the next
// majority: what is not promised, and why (see the package's documentation).
// The second case is an expectation. If it fails because the store has learned
// to keep such a node out, it has become a promise.
func TestRestartWithinALease(t *testing.T) {
	for _, c := range []struct {
		name     string
		settings []string
		excluded bool
	}{
		{"with its data", Durable, true},
		{"without", nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cluster := Start(t, nodes, c.settings...)
			var direct []string
			for _, n := range cluster.Nodes {
				direct = append(direct, n.Server.Addr())
			}
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
			second := lock(t, "redis://"+strings.Join(direct, ",")+"?"+patient.Encode())
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			also, err := second.Try(ctx)
			for err != nil && taken(err) <= nodes/2 && ctx.Err() == nil { // a majority has not decided
				pause(ctx, 10*time.Millisecond)
				also, err = second.Try(ctx)
			}
			if held.Err() != nil {
				t.Fatalf("the first lease is over: %v", held.Err())
			}
			if c.excluded != errors.Is(err, leasehold.ErrBusy) || c.excluded != (err != nil) {
				t.Errorf("the second client: %v; want it to be excluded: %v", err, c.excluded)
			}
			for _, n := range cluster.Nodes {
				n.Proxy.Pass()
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
	st, err := redis.Open(t.Context(), []string{where}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return leasehold.New(st, nil).Mutex("a").With(leasehold.LockOptions{TTL: time.Minute, NoRenew: true})
}

// taken is how many nodes said that somebody else has the lock.
func taken(err error) int {
	var busy *leasehold.BusyError
	n := 0
	if errors.As(err, &busy) {
		for _, o := range busy.Nodes {
			if o.Outcome == store.Taken {
				n++
			}
		}
	}
	return n
}
