package redisdoor

import (
	"strings"

	"github.com/leasehold-dev/leasehold/store"
)

// what says what this server is, in each refusal of a command.
const what = "this is leasehold serve --redis, which keeps locks and no other data"

const asLock = "A lock is SET key value NX PX milliseconds"

// refusalOf returns the error reply for a command that this server does not have.
func refusalOf(name string) string {
	if hint, ok := hints[name]; ok {
		return hint
	}
	return "ERR unknown command '" + store.Excerpt(strings.ToLower(name)) + "': " + what + ". It takes SET with NX and PX, GET, PTTL, EXISTS, DELIFEQ, and the scripts of lock libraries: see docs/redis-door.md"
}

// hints are the refusals that can say what to do instead.
var hints = func() map[string]string {
	all := map[string]string{}
	add := func(names, why string) {
		for name := range strings.FieldsSeq(names) {
			all[name] = "ERR unknown command '" + strings.ToLower(name) + "': " + what + ". " + why
		}
	}
	add("DEL UNLINK GETDEL", "It deletes no lock without knowing whose it is: use DELIFEQ key value, DELEX key IFEQ value, or your library's script that compares and deletes (in ShedLock: safeUpdate)")
	add("SETNX SETEX PSETEX GETSET MSET MSETNX APPEND SETRANGE INCR DECR INCRBY DECRBY", asLock)
	add("EXPIRE PEXPIRE EXPIREAT PEXPIREAT PERSIST GETEX", "To extend a lock, use SET key value XX PX milliseconds, or your library's script that compares and extends")
	add("KEYS SCAN DBSIZE RANDOMKEY", "To list locks, use leasehold ls, or the page of the server")
	add("SUBSCRIBE PSUBSCRIBE SSUBSCRIBE PUBLISH SPUBLISH UNSUBSCRIBE PUNSUBSCRIBE", "It sends no messages: a client that waits for a lock has to ask again, or to wait over HTTP or with leasehold's own client")
	add("MULTI EXEC DISCARD WATCH UNWATCH", "It has no transactions: send the commands without MULTI")
	add("READONLY READWRITE ASKING", "It is no cluster: connect without the cluster mode of the client")
	add("FCALL FCALL_RO FUNCTION EVAL_RO EVALSHA_RO", "It runs no functions: see docs/redis-door.md for the scripts that it knows")
	add("FLUSHALL FLUSHDB", "To take a lock from its holder, use leasehold break")
	add("HSET HGET HINCRBY HEXISTS HDEL", "Locks of Redisson and others that are hashes are not among them: see docs/redis-door.md for the clients that it serves")
	all["CLUSTER"] = "ERR This instance has cluster support disabled: " + what + ": connect without the cluster mode of the client"
	all["SENTINEL"] = "ERR unknown command 'sentinel': " + what + ", and no sentinel: connect to it directly"
	return all
}()
