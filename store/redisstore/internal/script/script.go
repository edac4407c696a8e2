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

	steps  bool   // it can be a step in a list
	letter string // then; empty: its first argument begins with that
	gate   int    // how many of its arguments are about the mark

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
	return newScript(name, func() *source { return one }, keys, args)
}

func newScript(name string, source func() *source, keys, args int) *Script {
	return &Script{
		Name: name, Keys: keys, Args: args, eachKeys: 2, each: 1, source: source,
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

// The scripts. Those with a second line have a variant that also gets the mark, for
// servers that must not have forgotten anything.
var (
	Acquire        = step("", 0, "acquire", 3, 3)
	AcquireGuarded = step("", 1, "acquire", 4, 4)
	Confirm        = step("c", 0, "confirm", 2, 2)
	Extend         = step("x", 0, "extend", 2, 2)
	ExtendGuarded  = step("X", 1, "extend", 3, 3)
	Release        = step("", 0, "release", 2, 2)
	ReleaseWhole   = step("", 0, "release", 3, 2) // in a cluster; see WholeEnd
	ReleaseGuarded = step("", 1, "release", 3, 3)
	Return         = step("b", 0, "return", 3, 10)
	ReturnGuarded  = step("B", 1, "return", 4, 11)
	Heal           = step("h", 1, "heal", 3, 3)
	// Steps of locks that several can hold; see kind.go.
	Admit            = step("k", 0, "admit", 4, 9)
	AdmitGuarded     = step("K", 1, "admit", 5, 10)
	EndHold          = step("e", 0, "endHold", 3, 5)
	EndHoldGuarded   = step("E", 1, "endHold", 4, 6)
	RenewHold        = step("p", 0, "renewHold", 4, 6).perLease(0, 2)
	RenewHoldGuarded = step("P", 1, "renewHold", 5, 7).perLease(0, 2)
	ConfirmHold      = step("q", 0, "confirmHold", 3, 3)
	Inspect          = load("inspect", 2, 1)
	InspectGuarded   = load("inspect", 3, 1)
	List             = loadLister(2)
	ListGuarded      = loadLister(3)
	Arrive           = load("arrive", 2, 12)
	UseAlone         = load("useAlone", 1, 2)
	SetMembership    = load("setMembership", 1, 5)

	All = []*Script{Acquire, Confirm, Extend, Release, Return, Heal, Steps, Inspect, Arrive, UseAlone, SetMembership}
)

// The changes of a lock that several can hold while it is held. They are rare, and so not among
// the scripts that every connection loads.
var (
	Downgrade        = load("change", 3, 4)
	DowngradeGuarded = load("change", 4, 5)
	Resize           = load("change", 3, 3)
	BreakHold        = load("change", 3, 8)
	BreakPart        = load("change", 4, 11)
)

// Steps does a list of steps; see StepList.
var Steps = load("steps", 0, 0)

// ShareSteps does a list of steps of locks that several can hold. Connections do not load it
// before it is needed.
var ShareSteps = load("shareSteps", 0, 0)

// list returns the script that does lists of steps with s.
func (s *Script) list() *Script {
	switch s {
	case Admit, AdmitGuarded, EndHold, EndHoldGuarded, RenewHold, RenewHoldGuarded, ConfirmHold:
		return ShareSteps
	}
	return Steps
}

// step makes a script that can also be a step in a list, where it has that letter. If letter is
// empty, its first argument begins with the letter.
func step(letter string, gate int, name string, keys, args int) *Script {
	s := load(name, keys, args)
	s.steps, s.letter, s.gate = true, letter, gate
	return s
}

// loadLister makes the script that inspects many locks, which gets all its input as keys.
func loadLister(keys int) *Script {
	return load("list", keys, 0).perLease(2, 0)
}

// perLease sets how many keys and arguments each lease beyond the first adds.
func (s *Script) perLease(keys, args int) *Script {
	s.eachKeys, s.each = keys, args
	return s
}

// draws reports whether the script answers with a token.
func (s *Script) draws() bool {
	return s == Acquire || s == AcquireGuarded || s == Confirm || s == ConfirmHold || s.downgrades() || s.admits()
}

// admits reports whether the script acquires a lock that several can hold.
func (s *Script) admits() bool { return s == Admit || s == AdmitGuarded }

// downgrades reports whether the script makes a writer a reader.
func (s *Script) downgrades() bool { return s == Downgrade || s == DowngradeGuarded }

// releases reports whether the script releases a mutex.
func (s *Script) releases() bool {
	return s == Release || s == ReleaseWhole || s == ReleaseGuarded
}

// Frees reports whether the script ends a lease.
func (s *Script) Frees() bool {
	return s.releases() || s == EndHold || s == EndHoldGuarded || s.returns()
}

// Keeps reports whether the script acquires a lock or extends a lease.
func (s *Script) Keeps() bool {
	return s == Acquire || s == AcquireGuarded || s.returns() || s.admits() || s.Renews()
}

// Renews reports whether the script renews leases, of whatever kind.
func (s *Script) Renews() bool { return s.renews() || s.renewsHold() }

// renews reports whether the script renews leases of mutexes.
func (s *Script) renews() bool { return s == Extend || s == ExtendGuarded }

// renewsHold reports whether the script renews the lease of a lock that several can hold.
func (s *Script) renewsHold() bool { return s == RenewHold || s == RenewHoldGuarded }

// returns reports whether the script enqueues a place after the release.
func (s *Script) returns() bool { return s == Return || s == ReturnGuarded }

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

// Gated reports whether a script ends with these arguments.
func (s *Script) Gated() bool {
	return s == AcquireGuarded || s == ReleaseGuarded || s == ReturnGuarded || s == Heal || s == AdmitGuarded || s == EndHoldGuarded || s == DowngradeGuarded || s == BreakPart
}

// Takes reports whether a script may create a lease or a place.
func (s *Script) Takes() bool {
	return s == Acquire || s == AcquireGuarded || s == Heal || s.admits()
}

// GrantsGuarded reports whether the script acquires a lock on a server that must have
// forgotten nothing.
func (s *Script) GrantsGuarded() bool { return s == AcquireGuarded || s == AdmitGuarded }
