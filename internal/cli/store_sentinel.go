package cli

var sentinelScheme = scheme{
	names: []string{"redis-sentinel", "rediss-sentinel"},
	usage: "redis-sentinel://USER:PASSWORD@SENTINEL:PORT,SENTINEL:PORT.../DB?master=NAME",
	help: `A Redis master that sentinels watch: they are asked where it is. A failover
can lose a lock, so --require crash-safe is refused; several independent
servers (redis://) lose none. USER, PASSWORD and DB are the master's; for
sentinels that ask for a password of their own there are sentinel_username
and sentinel_password. rediss-sentinel:// is the same over TLS.`,
	open: openRedis,
}
