package cli

import (
	"context"
	"log/slog"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redis"
)

var clusterScheme = scheme{
	names: []string{"redis-cluster", "rediss-cluster"},
	usage: "redis-cluster://USER:PASSWORD@HOST:PORT,HOST:PORT...?max_ttl=60s",
	help: `A Redis Cluster, of which any servers are named: each lock on the one that
has its slot. A replica that takes over may not know of the last locks, so
that it stands less than several servers of redis://, which have none.
rediss-cluster:// is the same over TLS.`,
	open: func(ctx context.Context, urls []string, log *slog.Logger) (store.Store, error) {
		return redis.OpenCluster(ctx, urls, &redis.Options{Logger: log})
	},
}
