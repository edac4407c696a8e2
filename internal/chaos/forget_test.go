package chaos

import (
	"context"
	"errors"
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
			lock := func() *leasehold.Lock {
				st, err := redis.Open(t.Context(), []string{cluster.URL(nil)}, nil)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { st.Close() })
				return leasehold.New(st, nil).Mutex("a").With(leasehold.LockOptions{TTL: time.Minute, NoRenew: true})
			}
			first, second := lock(), lock()
			away := cluster.Nodes[3:]
			for _, n := range away {
				n.Proxy.Blackhole()
			}
			held, err := first.Try(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range away {
				n.Proxy.Pass()
				if n.Server.Text(t, "EXISTS", "a") != "0" {
					t.Fatal("a node out of reach has the lock")
				}
			}
			if err := cluster.Nodes[2].Server.Restart(); err != nil {
				t.Fatal(err)
			}
			// Until a majority has decided: connections have to be made anew.
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			also, err := second.Try(ctx)
			for err != nil && taken(err) <= nodes/2 && ctx.Err() == nil {
				pause(ctx, 10*time.Millisecond)
				also, err = second.Try(ctx)
			}
			if held.Err() != nil {
				t.Fatalf("the first lease is over: %v", held.Err())
			}
			if excluded := errors.Is(err, leasehold.ErrBusy); excluded != c.excluded {
				t.Errorf("the second client: %v; excluded: %v, want %v", err, excluded, c.excluded)
			}
			for _, l := range []*leasehold.Lease{held, also} {
				if l != nil {
					l.Release(context.Background())
				}
			}
		})
	}
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
