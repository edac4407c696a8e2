package doctor

import (
	"strings"

	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
)

// oddities say what each is, with %s for how many keys.
var oddities = map[redisadmin.Oddity]struct {
	severity Severity
	code     Code
	says     string
}{
	redisadmin.Endless:          {Error, LockWithoutTTL, "%s never expires: it was not made by a client that bounds its leases, and the lock of that name stays taken until somebody deletes it."},
	redisadmin.WrongType:        {Error, LockOfWrongType, "%s holds something that is not a lock: the lock of that name cannot be taken."},
	redisadmin.Redisson:         {Error, RedissonLock, "%s is a lock of Redisson, which keeps locks in another form: Leasehold waits for it, but Redisson fails with WRONGTYPE while Leasehold has a lock of that name."},
	redisadmin.Foreign:          {Info, ForeignLock, "%s is held by another kind of client."},
	redisadmin.ForeignCounter:   {Warning, ForeignCounter, "%s should count the tokens of a lock, and is not a number: the lock whose name is in braces cannot be taken."},
	redisadmin.EndlessCounter:   {Warning, CounterWithoutTTL, "%s, which counts the tokens of a lock, never expires; Leasehold's counters expire after a day."},
	redisadmin.EndlessTombstone: {Warning, TombstoneWithoutTTL, "%s, left behind by a released lease, never expires; it should expire after the lease's TTL."},
}

// keys reports unexpected data at the names of locks.
func keys(r *report, e redisadmin.Examination) {
	each(e, func(n redisadmin.Examined) {
		switch {
		case n.Server.Loading: // it says nothing yet
		case n.Keys.Err != nil:
			r.add(Info, KeysNotSeen, n.Node, "The keys of locks could not be read (%v).", n.Keys.Err)
		case n.Keys.Partial:
			r.add(Info, KeysPartlySeen, n.Node, "There are too many keys: the examination stopped after %s.", count(n.Keys.Locks, "lock"))
		}
		for _, odd := range n.Keys.Odd {
			o := oddities[odd.Oddity]
			r.add(o.severity, o.code, n.Node, strings.Replace(o.says, "%s", "%[1]s", 1), examples(odd))
		}
	})
}

// examples names the keys, or a few of them and their number.
func examples(odd redisadmin.OddKeys) string {
	var names []string
	for _, k := range odd.Examples {
		name := "key " + quoted(k.Key)
		if k.Says != "" {
			name += " (" + k.Says + ")"
		}
		names = append(names, name)
	}
	if odd.Count == 1 {
		return names[0]
	}
	return "each of " + count(odd.Count, "key") + ", such as " + strings.Join(names, ", ") + ","
}
