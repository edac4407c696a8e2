// Package redisguard refuses writes to data in Redis by a holder whose lease is
// over. It knows nothing of locks, only fencing tokens.
//
// The largest token that a key has seen is kept in a second key beside it. A
// script compares the tokens, remembers the larger one and writes the data in one
// step. All writers of the key must use this package: a plain SET is not refused.
// Reading needs no guard.
//
// All tokens for a key must come from one lock. The data may be on the server
// that keeps the lock, on another server or in a cluster. Its key must not be the
// name of the lock, because that is the lock's own key.
//
// Token and data are written in one step, so a crash or a failover of the server
// loses both or neither. A server that evicts keys may evict the token alone, and
// a stale write is then accepted: guarded data needs maxmemory-policy noeviction.
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
