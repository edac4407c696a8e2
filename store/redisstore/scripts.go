package redisstore

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

// script is a Lua script that runs as one atomic step on a node.
type script struct {
	name string // of its file
	text string
	hash string // by which Redis calls it
	keys int    // number of keys
	args int    // number of arguments
	each int    // arguments per lease; see beginMany

	byHash []byte // beginning of a command that calls it
	byText []byte // the same, for a node that does not know the script yet
	lesson []byte // command that loads it and does nothing
}

func newScript(name, text string, keys, args int) *script {
	sum := sha1.Sum([]byte(text)) // Redis identifies scripts by this hash
	s := &script{name: name, text: text, hash: hex.EncodeToString(sum[:]), keys: keys, args: args, each: 1}
	s.byHash = appendBegin(nil, "EVALSHA", s.hash, keys, args)
	s.byText = appendBegin(nil, "EVAL", text, keys, args)
	s.lesson = appendBegin(nil, "EVAL", text, 0, 0)
	return s
}

// appendBegin appends the beginning of a command that calls a script.
func appendBegin(b []byte, verb, script string, keys, args int) []byte {
	b = resp.AppendCount(b, 3+keys+args)
	return resp.AppendNumber(resp.AppendWord(resp.AppendWord(b, verb), script), uint64(keys))
}

//go:embed scripts
var luaFiles embed.FS

// include begins a line of a script that stands for another file: what several
// scripts do is written once, and read by the server only where it is come to.
const include = "-- include "

func luaFile(name string) string {
	text, err := luaFiles.ReadFile("scripts/" + name + ".lua")
	if err != nil {
		panic(err) // the files are embedded, so this is a mistake in a script
	}
	// Without a regular expression: this is done whenever a program starts, whether
	// it uses Redis or not, and took a tenth of "leasehold run x -- true".
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		if file, ok := strings.CutPrefix(strings.TrimLeft(line, " "), include); ok {
			line = luaFile(strings.TrimSuffix(file, "\n"))
		}
		b.WriteString(line)
	}
	return b.String()
}

// load makes a script from a file.
func load(name string, keys, args int) *script {
	constants := fmt.Sprintf("local LEAD, LIFE = %d, '%d' -- us, ms\n", maxLead.Microseconds(), counterLife.Milliseconds())
	return newScript(name, constants+luaFile(name), keys, args)
}

// The scripts. Those with a second line have a variant that also gets the mark, for
// servers that must not have forgotten anything.
var (
	acquireScript = load("acquire", 3, 5)
	guardedScript = load("acquire", 4, 8)
	confirmScript = load("confirm", 2, 3)
	extendScript  = load("extend", 2, 3)
	prolongScript = load("extend", 3, 4)
	releaseScript = load("release", 2, 5)
	resignScript  = load("release", 3, 8)
	returnScript  = load("return", 2, 8)
	rejoinScript  = load("return", 3, 11)
	healScript    = load("heal", 3, 5)
	inspectScript = load("inspect", 2, 1)
	regardScript  = load("inspect", 3, 1)
	listScript    = loadLister(2)
	surveyScript  = loadLister(3)
	arriveScript  = load("arrive", 2, 9)
	relistScript  = load("relist", 1, 5)

	allScripts = []*script{acquireScript, confirmScript, extendScript, releaseScript, returnScript, healScript, inspectScript, arriveScript, relistScript}
)

// loadLister makes the script that inspects many locks, which gets all its input as keys.
func loadLister(keys int) *script {
	s := load("list", keys, 0)
	s.each = 0
	return s
}

// draws reports whether the script answers with a token.
func (s *script) draws() bool {
	return s == acquireScript || s == guardedScript || s == confirmScript
}

// frees reports whether the script ends a lease.
func (s *script) frees() bool { return s == releaseScript || s == resignScript || s.returns() }

// keeps reports whether the script acquires a lock or extends a lease.
func (s *script) keeps() bool {
	return s == acquireScript || s == guardedScript || s == extendScript || s == prolongScript || s.returns()
}

// returns reports whether the script enqueues a place after the release.
func (s *script) returns() bool { return s == returnScript || s == rejoinScript }

const (
	// maxLead is how far a proposed token may lead a node's clock. After a loss of data
	// that clock is the floor of tokens, and maxLead bounds how far a token can be ahead
	// of it.
	maxLead = time.Second
	// proposalLead is added to a proposed token, so that it is usually ahead of the clock
	// of every node that will see it a little later, and all nodes take it.
	proposalLead = 20 * time.Millisecond
	// counterLife is how long a counter outlives the last grant or renewal. Afterwards
	// the node's clock is the floor: it has advanced by a day, and no token leads it by
	// more than maxLead and the error of that clock.
	counterLife = 24 * time.Hour
)

// Keys of lock L. The lock itself is at its own name, where every other client that uses
// SET NX PX looks for it. All other keys are at {L}:..., in the same slot.
const (
	keyBegin   = "{"
	counterEnd = "}:token"
	tombMiddle = "}:gone:"
	// The queue of waiters, the places in it, and a summary of both. The scripts build
	// these names themselves.
	lineEnd     = "}:line"
	waitsEnd    = "}:waits"
	placeMiddle = "}:place:"
)

func appendCounterKey(b []byte, name string) []byte {
	return resp.AppendWord(b, keyBegin, name, counterEnd)
}

func appendTombKey(b []byte, r store.Lease) []byte {
	if r.Attempt == "" {
		return resp.AppendWord(b, keyBegin, r.Name, tombMiddle, r.Owner)
	}
	return resp.AppendWord(b, keyBegin, r.Name, tombMiddle, r.Owner, " ", r.Attempt)
}
