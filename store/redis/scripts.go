package redis

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"time"

	"github.com/leasehold-dev/leasehold/internal/majority"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// script is a Lua script that runs as one atomic step on a node.
type script struct {
	text  string
	keys  int  // how many it is called with
	args  int  // and arguments
	draws bool // it answers with a token

	byHash []byte // how a command that calls it begins
	byText []byte // the same for a node that does not know the script yet
	lesson []byte // a command that makes it known and does nothing
}

func newScript(text string, keys, args int, draws bool) *script {
	s := &script{text: text, keys: keys, args: args, draws: draws}
	sum := sha1.Sum([]byte(text)) // how Redis names scripts
	begin := func(verb, name string, keys, args int) []byte {
		b := appendCount(nil, 3+keys+args)
		return appendNumber(appendWord(appendWord(b, verb), name), uint64(keys))
	}
	s.byHash = begin("EVALSHA", hex.EncodeToString(sum[:]), keys, args)
	s.byText = begin("EVAL", text, keys, args)
	s.lesson = begin("EVAL", text, 0, 0)
	return s
}

var (
	//go:embed scripts/gate.lua
	gateLua string
	//go:embed scripts/acquire.lua
	acquireLua string
	//go:embed scripts/confirm.lua
	confirmLua string
	//go:embed scripts/extend.lua
	extendLua string
	//go:embed scripts/release.lua
	releaseLua string
	//go:embed scripts/heal.lua
	healLua string
	//go:embed scripts/inspect.lua
	inspectLua string
	//go:embed scripts/arrive.lua
	arriveLua string
	//go:embed scripts/relist.lua
	relistLua string

	acquireScript = newScript(gateLua+acquireLua, 3, 5, true)
	guardedScript = newScript(gateLua+acquireLua, 4, 7, true) // the same, with the mark
	confirmScript = newScript(confirmLua, 2, 3, true)
	extendScript  = newScript(extendLua, 2, 3, false)
	prolongScript = newScript(extendLua, 3, 4, false) // the same, with the mark
	releaseScript = newScript(releaseLua, 2, 3, false)
	healScript    = newScript(gateLua+healLua, 3, 4, false)
	inspectScript = newScript(inspectLua, 2, 0, false)
	regardScript  = newScript(inspectLua, 3, 0, false) // the same, with the mark
	arriveScript  = newScript(arriveLua, 1, 7, false)
	relistScript  = newScript(relistLua, 1, 3, false)

	allScripts = []*script{acquireScript, confirmScript, extendScript, releaseScript, healScript, inspectScript, arriveScript, relistScript}
)

const (
	// maxLead is how far a proposed token may lead a node's clock. It bounds by
	// how much a token can be ahead of the clock that is its floor after a loss
	// of data.
	maxLead = time.Second
	// proposalLead makes the proposal larger than the clocks of the nodes that
	// will see it a little later, so that usually all of them take it.
	proposalLead = 20 * time.Millisecond
	// counterLife is how long a counter outlives the last grant or renewal.
	// Afterwards the node's clock is the floor: it has moved on by a day, and
	// no token leads it by more than maxLead and the error of that clock.
	counterLife = 24 * time.Hour
)

// Keys of lock L. The lock itself is at its own name, where every other client
// that uses SET NX PX looks for it; all else is at {L}:..., in the same slot.
const (
	keyBegin   = "{"
	counterEnd = "}:token"
	tombMiddle = "}:gone:"
)

func appendCounterKey(b []byte, name string) []byte {
	return appendWord(b, keyBegin, name, counterEnd)
}

func appendTombKey(b []byte, r store.Request) []byte {
	return appendWord(b, keyBegin, r.Name, tombMiddle, r.Owner)
}

// encode turns a question into the command that asks it, in the memory of an
// old one where there is one. The wall clock serves for the token's proposal
// only, which each node keeps near its own clock: a wrong one costs a round
// trip, and changes nothing else.
func (s *Store) encode(q majority.Question, old any) any {
	c, _ := old.(*command)
	if c == nil {
		c = new(command)
	}
	r := q.Lease
	switch q.Op {
	case quorum.Acquire:
		script, guarded := acquireScript, s.guards(r)
		if guarded {
			script = guardedScript
		}
		b := appendWord(c.begin(script), r.Name)
		b = appendTombKey(appendCounterKey(b, r.Name), r)
		if guarded {
			b = appendWord(b, markKey)
		}
		b = appendMillis(appendValue(b, r), r.TTL)
		b = appendNumber(b, uint64(max(0, s.wall().Add(proposalLead).UnixMicro())))
		b = appendNumber(b, uint64(maxLead.Microseconds()))
		b = appendMillis(b, counterLife)
		if guarded {
			b = appendNumber(b, uint64(s.o.quarantine().Microseconds()))
			b = appendWord(b, s.lists.print)
		}
		c.bytes = b
	case quorum.Confirm:
		b := appendCounterKey(appendWord(c.begin(confirmScript), r.Name), r.Name)
		b = appendNumber(appendValue(b, r), q.Token)
		c.bytes = appendMillis(b, counterLife)
	case quorum.Extend:
		script, guarded := extendScript, s.guards(r)
		if guarded {
			script = prolongScript
		}
		b := appendCounterKey(appendWord(c.begin(script), r.Name), r.Name)
		if guarded {
			b = appendWord(b, markKey)
		}
		b = appendMillis(appendValue(b, r), r.TTL)
		b = appendMillis(b, counterLife)
		if guarded {
			b = appendWord(b, s.lists.print)
		}
		c.bytes = b
	case quorum.Heal:
		b := appendTombKey(appendWord(c.begin(healScript), r.Name), r)
		b = appendMillis(appendValue(appendWord(b, markKey), r), r.TTL)
		b = appendNumber(b, uint64(s.o.quarantine().Microseconds()))
		c.bytes = appendWord(b, s.lists.print)
	default: // quorum.Release
		life, always := time.Duration(0), "0"
		if q.Tomb {
			life = r.TTL
		}
		if r.Renewed {
			always = "1"
		}
		b := appendTombKey(appendWord(c.begin(releaseScript), r.Name), r)
		c.bytes = appendWord(appendMillis(appendValue(b, r), life), always)
	}
	return c
}

func (s *Store) inspectCall(name string) *command {
	c := new(command)
	if !s.guarded.Load() {
		c.bytes = appendCounterKey(appendWord(c.begin(inspectScript), name), name)
		return c
	}
	c.bytes = appendWord(appendCounterKey(appendWord(c.begin(regardScript), name), name), markKey)
	return c
}
