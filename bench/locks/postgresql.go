package locks

import (
	"context"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver

	lh "github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/bench/floor"
	"github.com/leasehold-dev/leasehold/internal/lab/load"
	"github.com/leasehold-dev/leasehold/store"
	_ "github.com/leasehold-dev/leasehold/store/sqlstore" // the scheme postgres
)

const pgxModule = "github.com/jackc/pgx/v5"

// ofClass returns the ending of the names of what waits for the disk or not.
func ofClass(durable bool) (name, label string) {
	if durable {
		return "", ", crash-safe"
	}
	return "-async", ", efficiency"
}

// postgresql is Leasehold in PostgreSQL, opened by its URL.
func postgresql(require store.Class) Kind {
	o := lh.LockOptions{TTL: TTL, Require: require}
	return postgresqlWith(require, func(st store.Store, locks *lh.Client) Client {
		pair := func(name string) load.Pair { return load.OfLock(locks.Mutex(name).With(o)) }
		return client{pair, func() { st.Close() }}
	})
}

// postgresqlWaiting is the same, waiting for its turn.
func postgresqlWaiting(require store.Class) Kind {
	return postgresqlWith(require, func(st store.Store, locks *lh.Client) Client {
		return waitingClient(st, locks, lh.LockOptions{TTL: TTL, Require: require})
	})
}

func postgresqlWith(require store.Class, of func(store.Store, *lh.Client) Client) Kind {
	name, label := ofClass(require > store.Efficiency)
	return Kind{
		Name: "leasehold-postgresql" + name, Label: "Leasehold, PostgreSQL" + label, Role: Ours, Engine: PostgreSQL, Nodes: 1,
		Open: func(ctx context.Context, addrs []string) (Client, error) {
			st, err := store.Open(ctx, addrs[0], nil)
			if err != nil {
				return nil, err
			}
			return of(st, lh.New(st, nil)), nil
		},
	}
}

// postgresqlFloor is the same steps by hand, each lock on a connection of its own.
func postgresqlFloor(durable bool) Kind {
	name, label := ofClass(durable)
	return Kind{
		Name: "floor-postgresql" + name, Label: "by hand, PostgreSQL" + label, Role: Floor, Engine: PostgreSQL, Nodes: 1,
		Open: func(_ context.Context, addrs []string) (Client, error) {
			return floor.OpenPostgreSQL(addrs[0], durable), nil
		},
	}
}

// advisory is pg_advisory_lock: without a TTL, a token or anything that outlives a
// connection.
var advisory = Kind{
	Name: "advisory-postgresql", Label: "pg_advisory_lock", Role: Peer, Engine: PostgreSQL, Nodes: 1, Module: pgxModule,
	Open: func(_ context.Context, addrs []string) (Client, error) { return floor.OpenAdvisory(addrs[0]), nil },
}
