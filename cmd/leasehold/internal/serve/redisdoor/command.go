package redisdoor

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// verb is something to do with a lock.
type verb uint8

const (
	acquire verb = iota // take the lock if it is free
	extend              // if its holder wrote the value
	release             // if its holder wrote the value
	compare             // say how long the lease lasts if its holder wrote the value
	value               // say what its holder wrote
	left                // say for how many milliseconds the lock is held
	seconds             // the same in seconds
	exists              // say how many of the locks are held
)

// locks reports whether the verb needs the right to lock.
func (v verb) locks() bool { return v <= compare }

// plan is what a command asks for. What the locks are, carrying it out finds one of three
// outcomes, and answers with the reply of that.
type plan struct {
	verb  verb
	name  string
	names []string // of exists, instead of name
	value string

	ttl   time.Duration // of acquire and extend
	until int64         // instead of ttl: a time in milliseconds since 1970
	adds  bool          // ttl is added to what is left of the lease

	// create has extend take a lock that is free.
	create bool
	// prefix has acquire extend the lease of a holder whose value begins with as many bytes as
	// value does, or is empty if it is 0. It is negative if there is no such holder.
	prefix int
	// tells has acquire answer with the value of another holder.
	tells bool

	done  reply // it is so now
	free  reply // nobody holds the lock
	other reply // the holder wrote something else
}

// takes reports whether the plan may take a lock.
func (p *plan) takes() bool { return p.verb == acquire || p.create }

// looks reports whether the plan answers with something that only those see who may look.
func (p *plan) looks() bool { return p.verb >= value || p.tells }

// lockCommands make plans. The name of the command is not among the words, of which there are
// at least as many as least.
var lockCommands = map[string]struct {
	least, most int
	plan        func(words []string) (plan, *reply)
}{
	"SET": {2, 9, planOfSet},
	"GET": {1, 1, func(w []string) (plan, *reply) { return plan{verb: value, name: w[0], free: nul}, nil }},
	"PTTL": {1, 1, func(w []string) (plan, *reply) {
		return plan{verb: left, name: w[0], free: number(-2)}, nil
	}},
	"TTL": {1, 1, func(w []string) (plan, *reply) {
		return plan{verb: seconds, name: w[0], free: number(-2)}, nil
	}},
	"EXISTS":  {1, mostWords, func(w []string) (plan, *reply) { return plan{verb: exists, names: w}, nil }},
	"DELIFEQ": {2, 2, func(w []string) (plan, *reply) { return deletes(w[0], w[1]), nil }},
	"DELEX": {1, 3, func(w []string) (plan, *reply) {
		if len(w) != 3 || !strings.EqualFold(w[1], "IFEQ") {
			return refuse(hints["DEL"])
		}
		return deletes(w[0], w[2]), nil
	}},
}

// deletes is the plan of a compare-and-delete.
func deletes(name, value string) plan {
	return plan{verb: release, name: name, value: value, done: number(1), free: number(0), other: number(0)}
}

// planOf returns the plan of a command about locks, or the reply if there is none. known are the
// scripts that clients can call by their hash.
func planOf(words []string, known *scripts) (plan, *reply) {
	name := strings.ToUpper(words[0])
	words = words[1:]
	switch name {
	case "EVAL":
		return planOfEval(words, func(source string) *script { return known.learn(source) }, refusedScript)
	case "EVALSHA":
		return planOfEval(words, known.byHash, noScript)
	}
	c, isKnown := lockCommands[name]
	switch {
	case !isKnown:
		return refuse(refusalOf(name))
	case len(words) < c.least || len(words) > c.most:
		return refuse("ERR wrong number of arguments for '" + strings.ToLower(name) + "' command")
	}
	return c.plan(words)
}

func refuse(why string) (plan, *reply) {
	r := failed(why)
	return plan{}, &r
}

// milliseconds reads a time that is a number of units.
func milliseconds(s string, unit time.Duration) (time.Duration, string) {
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case err != nil:
		return 0, "ERR value is not an integer or out of range"
	case n <= 0 || n > math.MaxInt64/2/int64(unit): // half: something may be added
		return 0, "ERR invalid expire time: a lease lasts for at least a millisecond, and not for ever"
	}
	return time.Duration(n) * unit, ""
}
