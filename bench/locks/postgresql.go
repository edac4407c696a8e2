package locks

import (
	"context"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver

	"github.com/leasehold-dev/leasehold/bench/floor"
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

func postgresqlIn(require store.Class) inEngine {
	name, label := ofClass(require > store.Efficiency)
	return inEngine{
		Kind:    Kind{Name: "leasehold-postgresql" + name, Label: "Leasehold, PostgreSQL" + label, Engine: PostgreSQL},
		url:     func(addr string) string { return addr },
		require: require,
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
