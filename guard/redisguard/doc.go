// Package redisguard keeps writes of a holder whose lease is over out of data in
// Redis. It knows nothing of locks: a token is all it needs.
//
// The largest token that a key has seen stands beside it, and a script compares,
// remembers and writes in one step. All writers of the key have to come this way;
// a plain SET is not held back. Reading needs no guard.
//
// The tokens must come from the locks of one name. The data may be on the server
// that keeps those locks or on any other, a cluster included; but the key of the
// data must not be the name of the lock, which is the key of the lock.
//
// The token beside the key is written in one step with the data, so what a
// server loses in a crash or a failover it loses of both. A server that evicts
// keys may evict the token alone, and then a stale write gets through: guarded
// data needs maxmemory-policy noeviction.
//
// # Clients
//
// Any client library will do: redisguard takes one function, an Eval, that runs
// a script. With rueidis:
//
//	eval := func(ctx context.Context, script string, keys, args []string) (any, error) {
//		return rueidis.NewLuaScript(script).Exec(ctx, client, keys, args).ToAny()
//	}
//
// and with go-redis, whose arguments are of any type:
//
//	eval := func(ctx context.Context, script string, keys, args []string) (any, error) {
//		var more []any
//		for _, a := range args {
//			more = append(more, a)
//		}
//		return redis.NewScript(script).Run(ctx, client, keys, more...).Result()
//	}
//
// Both send the script's hash, and its text when the server does not know it.
package redisguard
