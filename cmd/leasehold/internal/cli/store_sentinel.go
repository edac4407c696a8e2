package cli

var sentinelScheme = scheme{
	names: []string{"redis-sentinel", "rediss-sentinel"},
	usage: "redis-sentinel://USER:PASSWORD@SENTINEL:PORT,SENTINEL:PORT.../DB?master=NAME",
	help: `A Redis master watched by sentinels, which say where it is. A failover can
lose a lock, so --require crash-safe is refused; several independent servers
(redis://) lose none. USER, PASSWORD and DB are those of the master;
sentinel_username and sentinel_password are those of the sentinels, if they
have their own. rediss-sentinel:// is the same over TLS.`,
}
