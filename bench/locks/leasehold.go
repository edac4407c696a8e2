package locks

import (
	"context"
	"fmt"
	"strings"

	lh "github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/lab/load"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
	"github.com/leasehold-dev/leasehold/store/redisstore/rueidisnode"
)

// rarelySent has the commands of a client that its scripts call, too: it reads the mark of a
// server when it connects, and a server's clock if it has not read it for long.
var rarelySent = []string{"get", "time"}

// leasehold is Leasehold with its default settings: tokens, renewal, deadlines.
func leasehold(n int) Kind {
	return Kind{
		Uncounted: rarelySent,
		Name:      fmt.Sprintf("leasehold-%d", n), Label: "Leasehold, " + nodes(n), Role: Ours, Engine: Redis, Nodes: n,
		Open: func(ctx context.Context, addrs []string) (Client, error) {
			st, locks, err := Leasehold(ctx, addrs, nil)
			if err != nil {
				return nil, err
			}
			pair := func(name string) load.Pair { return load.OfLock(locks.Mutex(name).With(lh.LockOptions{TTL: TTL})) }
			return client{pair, func() { st.Close() }}, nil
		},
	}
}

// Leasehold opens a store over the servers, and a client of it.
func Leasehold(ctx context.Context, addrs []string, o *redisstore.Options) (*store.Store, *lh.Client, error) {
	st, err := redisstore.Open(ctx, "redis://"+strings.Join(addrs, ","), o)
	if err != nil {
		return nil, nil, err
	}
	return st, lh.New(st, nil), nil
}

// leaseholdThroughRueidis is Leasehold with the connections of rueidis instead of its own.
var leaseholdThroughRueidis = Kind{
	Name: "leasehold-rueidis-1", Label: "Leasehold through rueidis, 1 node", Role: Ours, Engine: Redis, Nodes: 1,
	Uncounted: rarelySent,
	Open: func(ctx context.Context, addrs []string) (Client, error) {
		st, err := rueidisnode.Open(ctx, addrs[0])
		if err != nil {
			return nil, err
		}
		locks := lh.New(st, nil)
		return client{func(name string) load.Pair { return load.OfLock(locks.Mutex(name).With(lh.LockOptions{TTL: TTL})) }, func() { st.Close() }}, nil
	},
}
