package cli

var clusterScheme = scheme{
	names: []string{"redis-cluster", "rediss-cluster"},
	usage: "redis-cluster://USER:PASSWORD@HOST:PORT,HOST:PORT...?node_timeout=50ms",
	help: `A Redis Cluster; name any of its servers. Each lock is kept by the master
of its slot. A replica that takes over may not know the latest locks, so the
guarantee is weaker than that of several servers with redis://.
rediss-cluster:// is the same over TLS.`,
}
