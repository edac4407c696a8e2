package script

import (
	"crypto/sha1"
	"encoding/hex"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

// Script is a Lua script that runs as one atomic step on a node.
type Script struct {
	Name string // of its file
	Keys int    // number of keys
	Args int    // number of arguments
	// Keys and arguments for each lease beyond the first; see beginMany.
	eachKeys, each int

	List   *Script // that does lists of steps with it; nil: it can be none
	letter string  // then; empty: its first argument begins with that
	does   Effect

	source func() *source
	byHash func() []byte // beginning of a command that calls it
}

// source is the text of a script and what depends on it alone.
type source struct {
	text, hash string
	lesson     []byte
}

func sourceOf(text string) *source {
	sum := sha1.Sum([]byte(text)) // Redis identifies scripts by this hash
	return &source{text, hex.EncodeToString(sum[:]), appendBegin(nil, "EVAL", text, 0, 0)}
}

func New(name, text string, keys, args int) *Script {
	one := sourceOf(text)
	return newScript(name, func() *source { return one }, keys, args, 0)
}

func newScript(name string, source func() *source, keys, args int, does Effect) *Script {
	return &Script{
		Name: name, Keys: keys, Args: args, eachKeys: 2, each: 1, does: does, source: source,
		byHash: sync.OnceValue(func() []byte { return appendBegin(nil, "EVALSHA", source().hash, keys, args) }),
	}
}

// Text returns the text of the script.
func (s *Script) Text() string { return s.source().text }

// Hash returns what Redis calls the script by.
func (s *Script) Hash() string { return s.source().hash }

// Lesson returns a command that loads the script and does nothing.
func (s *Script) Lesson() []byte { return s.source().lesson }

// appendBegin appends the beginning of a command that calls a script.
func appendBegin(b []byte, verb, script string, keys, args int) []byte {
	b = resp.AppendCount(b, 3+keys+args)
	return resp.AppendNumber(resp.AppendWord(resp.AppendWord(b, verb), script), uint64(keys))
}

// Effect is what a script does, as far as its senders have to know.
type Effect uint8

const (
	Takes       Effect = 1 << iota // it may create a lease or a place
	Draws                          // it answers with a token
	Keeps                          // it acquires a lock or extends a lease
	Renews                         // it extends leases, and may do so while grants are refused
	Frees                          // it ends a lease
	Breaks                         // it breaks a lease on the one server that has it
	Gated                          // it needs a server that has forgotten nothing; see FillGate
	carriesMark                    // in a list, its last argument is the list's: that about the mark
)

// Does reports whether the script does all of that. A command that is no script has a nil one, which
// does nothing.
func (s *Script) Does(all Effect) bool { return s != nil && s.does&all == all }

// is reports whether the script is the one of that name, or its variant with the mark.
func (s *Script) is(name string) bool { return s != nil && s.Name == name }

// The scripts. Those with a second line have a variant that also gets the mark, for
// servers that must not have forgotten anything.
var (
	Acquire        = step("", "acquire", 3, 3, Takes|Draws|Keeps)
	AcquireGuarded = step("", "acquire", 4, 4, Takes|Draws|Keeps|Gated|carriesMark)
	Confirm        = step("c", "confirm", 2, 2, Draws)
	Extend         = step("x", "extend", 2, 2, Keeps|Renews)
	ExtendGuarded  = step("X", "extend", 3, 3, Keeps|Renews|carriesMark)
	Release        = step("", "release", 2, 2, Frees)
	ReleaseWhole   = step("", "release", 3, 2, Frees) // in a cluster; see WholeEnd
	ReleaseGuarded = step("", "release", 3, 3, Frees|Gated|carriesMark)
	Return         = step("b", "return", 3, 10, Keeps|Frees)
	ReturnGuarded  = step("B", "return", 4, 11, Keeps|Frees|Gated|carriesMark)
	Heal           = step("h", "heal", 3, 3, Takes|Gated|carriesMark)
	// Steps of locks that several can hold; see kind.go.
	Admit            = shareStep("k", "admit", 4, 9, Takes|Draws|Keeps)
	AdmitGuarded     = shareStep("K", "admit", 5, 10, Takes|Draws|Keeps|Gated|carriesMark)
	EndHold          = shareStep("e", "endHold", 3, 5, Frees)
	EndHoldGuarded   = shareStep("E", "endHold", 4, 6, Frees|Gated|carriesMark)
	RenewHold        = shareStep("p", "renewHold", 4, 6, Keeps|Renews).perLease(0, 2)
	RenewHoldGuarded = shareStep("P", "renewHold", 5, 7, Keeps|Renews|carriesMark).perLease(0, 2)
	ConfirmHold      = shareStep("q", "confirmHold", 3, 3, Draws)
	Inspect          = load("inspect", 2, 1, 0)
	InspectGuarded   = load("inspect", 3, 1, 0)
	List             = load("list", 2, 0, 0).perLease(2, 0) // of many locks, with all input as keys
	ListGuarded      = load("list", 3, 0, 0).perLease(2, 0)
	Arrive           = load("arrive", 2, 12, 0)
	UseAlone         = load("useAlone", 1, 2, 0)
	SetMembership    = load("setMembership", 1, 5, 0)

	All = []*Script{Acquire, Confirm, Extend, Release, Return, Heal, Steps, Inspect, Arrive, UseAlone, SetMembership}
)

// The changes of a lock while it is held. They are rare, and so not among the scripts that every
// connection loads.
var (
	Break            = load("break", 4, 6, Breaks)
	Downgrade        = load("change", 3, 4, Draws)
	DowngradeGuarded = load("change", 4, 5, Draws|Gated)
	Resize           = load("change", 3, 3, 0)
	BreakHold        = load("change", 3, 8, Breaks)
	BreakPart        = load("change", 4, 11, Gated)
)

// Steps does a list of steps; see StepList.
var Steps = load("steps", 0, 0, 0)

// ShareSteps does a list of steps of locks that several can hold. Connections do not load it
// before it is needed.
var ShareSteps = load("shareSteps", 0, 0, 0)

// step makes a script that can also be a step in a list, where it has that letter. If letter is
// empty, its first argument begins with the letter.
func step(letter, name string, keys, args int, does Effect) *Script {
	s := load(name, keys, args, does)
	s.List, s.letter = Steps, letter
	return s
}

// shareStep makes a step of a lock that several can hold.
func shareStep(letter, name string, keys, args int, does Effect) *Script {
	s := step(letter, name, keys, args, does)
	s.List = ShareSteps
	return s
}

// perLease sets how many keys and arguments each lease beyond the first adds.
func (s *Script) perLease(keys, args int) *Script {
	s.eachKeys, s.each = keys, args
	return s
}

const (
	// maxLead is how far a proposed token may lead a node's clock. After a loss of data
	// that clock is the floor of tokens, and maxLead bounds how far a token can be ahead
	// of it.
	maxLead = time.Second
	// ProposalLead is added to a proposed token, so that it is usually ahead of the clock
	// of every node that will see it a little later, and all nodes take it.
	ProposalLead = 20 * time.Millisecond
	// CounterLife is how long a counter outlives the last grant or renewal. Afterwards
	// the node's clock is the floor: it has advanced by nearly a day, and no token leads it
	// by more than maxLead and the error of that clock. A counter that was raised to the token of
	// a node whose clock is ahead may end earlier by as much.
	CounterLife = counterTTL - counterStep
	// A counter gets this TTL with the first token of an hour. It keeps the TTL with later
	// tokens of that hour, if they lead the clock by at most maxLead. Tokens count
	// microseconds.
	counterTTL, counterStep = 24 * time.Hour, time.Hour
)
