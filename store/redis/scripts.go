package redis

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"strconv"
	"time"

	"github.com/leasehold-dev/leasehold/internal/majority"
	"github.com/leasehold-dev/leasehold/internal/quorum"
)

// script is the hash of a Lua script that runs as one atomic step on a node.
type script string

var textOf = map[string]string{}

func newScript(text string) script {
	sum := sha1.Sum([]byte(text)) // how Redis names scripts
	sha := hex.EncodeToString(sum[:])
	textOf[sha] = text
	return script(sha)
}

var (
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

	acquireScript = newScript(acquireLua)
	confirmScript = newScript(confirmLua)
	extendScript  = newScript(extendLua)
	releaseScript = newScript(releaseLua)
	healScript    = newScript(healLua)
	inspectScript = newScript(inspectLua)

	allScripts = []script{acquireScript, confirmScript, extendScript, releaseScript, healScript, inspectScript}
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

// call is the command line that runs s. Its second word is the hash, which
// byText replaces where the node does not know the script yet.
func (s script) call(keys, argv []string) []string {
	command := make([]string, 0, 3+len(keys)+len(argv))
	command = append(command, "EVALSHA", string(s), strconv.Itoa(len(keys)))
	command = append(command, keys...)
	return append(command, argv...)
}

// draws says whether the script that command runs answers with a token.
func draws(command []string) bool {
	s := script(command[1])
	return s == acquireScript || s == confirmScript
}

// byText is the same call with the script's text, which the node then knows.
func byText(command []string) []string {
	return append([]string{"EVAL", textOf[command[1]]}, command[2:]...)
}

// Keys of lock L. The lock itself is at its own name, where every other client
// that uses SET NX PX looks for it; all else is at {L}:..., in the same slot.
func counterKey(name string) string     { return "{" + name + "}:token" }
func tombKey(name, owner string) string { return "{" + name + "}:gone:" + owner }

// millis rounds up: a store may keep a lease longer than asked, never shorter.
func millis(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Millisecond-1)/time.Millisecond), 10)
}

func micros(d time.Duration) string { return strconv.FormatInt(d.Microseconds(), 10) }

var (
	maxLeadArg     = micros(maxLead)
	counterLifeArg = millis(counterLife)
)

// encode turns a question into the command that asks it. The wall clock serves
// for the token's proposal only, which each node keeps near its own clock: a
// wrong one costs a round trip, and changes nothing else.
func (s *Store) encode(q majority.Question) any {
	r, value := q.Lease, encodeValue(q.Lease)
	lock, counter := r.Name, counterKey(r.Name)
	switch q.Op {
	case quorum.Acquire:
		propose := strconv.FormatInt(s.wall().Add(proposalLead).UnixMicro(), 10)
		return acquireScript.call([]string{lock, counter, tombKey(lock, r.Owner)},
			[]string{value, millis(r.TTL), propose, maxLeadArg, counterLifeArg})
	case quorum.Confirm:
		return confirmScript.call([]string{lock, counter},
			[]string{value, strconv.FormatUint(q.Token, 10), counterLifeArg})
	case quorum.Extend:
		return extendScript.call([]string{lock, counter}, []string{value, millis(r.TTL), counterLifeArg})
	case quorum.Heal:
		return healScript.call([]string{lock, tombKey(lock, r.Owner)}, []string{value, millis(r.TTL)})
	default: // quorum.Release
		life, always := "0", "0"
		if q.Tomb {
			life = millis(r.TTL)
		}
		if r.Renewed {
			always = "1"
		}
		return releaseScript.call([]string{lock, tombKey(lock, r.Owner)}, []string{value, life, always})
	}
}

func inspectCall(name string) []string {
	return inspectScript.call([]string{name, counterKey(name)}, nil)
}
