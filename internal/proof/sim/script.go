package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// Limits of a script.
const (
	maxNodes   = 7
	maxClients = 6
	maxWorkers = 4
	maxLocks   = 4
	maxCrowd   = 1000
	operators  = 2
)

// Script is one run, whole: the same script gives the same history, event by
// event, whatever machine, scheduler or random source runs it.
type Script struct {
	// Seed draws all that is small: how long each message takes, what each
	// worker does next and for how long.
	Seed    uint64 `json:"seed"`
	Nodes   int    `json:"nodes"`
	Clients int    `json:"clients"` // processes
	Workers int    `json:"workers"` // goroutines of each that want locks
	Locks   int    `json:"locks"`
	// TTL of the longest leases, in units of 1.8 s; others last half as long.
	TTL int `json:"ttl"`
	// NodeTimeout in milliseconds; 0 is the Redis store's default.
	NodeTimeout int `json:"nodetimeout,omitempty"`
	// Span is for how long workers come and go and faults begin, in seconds.
	// Afterwards everything heals, and everybody must get the lock once more.
	Span int `json:"span"`
	// Steady: the first worker holds the first lock all that time, and must not
	// lose it.
	Steady bool    `json:"steady,omitempty"`
	Faults []Fault `json:"faults"`
	// Roll: of four nodes, the list 1,2,3 is replaced by 1,2,4 while clients
	// with the old list, with both and with the new one are at work, in turn.
	Roll bool `json:"roll,omitempty"`
	// Alike: the goroutines of a client want the same, so that they share a queue.
	Alike bool `json:"alike,omitempty"`
	// Poll: nobody waits in the queue, everybody asks again and again.
	Poll bool `json:"poll,omitempty"`
	// Eager: now and then a worker wants the first lock again as soon as it has given
	// it back, many times in a row.
	Eager bool `json:"eager,omitempty"`
	// Crowd: so many further goroutines of the first client hold the first lock together, if it
	// is a read-write lock, or else wait for it and give up together.
	Crowd int `json:"crowd,omitempty"`
	// Operator: two operators end leases, by the owner or the token that they are shown.
	Operator bool `json:"operator,omitempty"`
	// Kinds, unless it is 0: the locks are, in turn, a read-write lock (1), a semaphore of 3
	// (2), a mutex (3) and a semaphore of 2 (4), beginning with that one.
	Kinds int `json:"kinds,omitempty"`
}

// Fault is one thing that goes wrong.
type Fault struct {
	Kind Kind `json:"kind"`
	// At is when it begins and For how long it lasts, in milliseconds.
	At  int `json:"at"`
	For int `json:"for,omitempty"`
	// Client and Node are the ones that it hits, counted from 1; 0 means all. The operators are
	// counted after the clients: a fault of the network hits them only if it names one.
	Client int `json:"client,omitempty"`
	Node   int `json:"node,omitempty"`
	// Size is how much, in what the kind measures.
	Size int `json:"size,omitempty"`
}

// Kind of a Fault.
type Kind string

// The faults that the protocol is made for: none of them may break a promise.
const (
	// Delay: messages between client and node take Size milliseconds longer.
	Delay Kind = "delay"
	// Fade: the same, and afterwards, for as long again, nothing passes at all.
	Fade Kind = "fade"
	// Hold: nothing passes between client and node, in either direction; no
	// connection breaks by it. Messages under way are delivered when it
	// ends, or never (connection by connection).
	Hold Kind = "hold"
	// Deaf: requests pass, replies are held as by Hold.
	Deaf Kind = "deaf"
	// Cut: the connection breaks now. Earlier requests of the client
	// may still arrive, up to Size milliseconds later: after requests on its next
	// connection.
	Cut Kind = "cut"
	// Full: the socket has no room, so that writes block.
	Full Kind = "full"
	// Slow: the node needs Size milliseconds more for every command, one after
	// the other.
	Slow Kind = "slow"
	// Refuse: connections to the node are refused, and none that there was is left,
	// for example because its process was not quick enough to be started again. It
	// loses nothing.
	Refuse Kind = "refuse"
	// Ail: the node has no memory left (Size 0), no room to write to (1), or is
	// reading its data (2), and answers with errors.
	Ail Kind = "ail"
	// Crash: the node is down. It comes back with everything (Size 0), without
	// the last Size milliseconds of its writes (up to 1000), or empty (Size
	// larger). It stays out for the quarantine then, and also if it comes back with
	// everything but is not known to write it down in time: the nodes of a script
	// that never lose anything, in a crash or to a copy, are.
	Crash Kind = "crash"
	// Boot: the node crashes and comes back empty, with its clock Size milliseconds
	// behind. That is set right For later.
	Boot Kind = "boot"
	// Replace: another server takes the node's place: a copy of it, made Size
	// milliseconds ago (up to 1000), that has been running for long. If it lacks
	// anything, the node was not known to write it down in time: clients that miss
	// nothing take a copy of one that was for the node itself, as documented.
	Replace Kind = "replace"
	// Replicate: the node becomes a replica of the next one, which gives it that one's
	// data (Size 0), or of its own replica, which gives it the data that it had Size
	// milliseconds ago (up to 1000), and is a master again when the fault ends.
	Replicate Kind = "replicate"
	// Wipe: the node loses everything, and goes on; as with FLUSHALL.
	Wipe Kind = "wipe"
	// Switch: the operator switches from the old list to the new one; in
	// scripts that Roll.
	Switch Kind = "switch"
	// StepBack: the node's clock is set back Size milliseconds (at most 250,
	// and twice).
	StepBack Kind = "stepback"
	// WallClock: the client's idea of the time of day is wrong by Size seconds.
	WallClock Kind = "wallclock"
	// Pause: the client's process is stopped. When it goes on, it sees
	// messages that arrived meanwhile before its timers, or after them with Size 1.
	Pause Kind = "pause"
	// Move: the client's machine is moved to another host just after it has next
	// asked for a lock (Size 0) or renewed one (1), if it does so within For. It
	// stops for as long, and its network is dead for twice as long after that.
	Move Kind = "move"
	// Doze: all client machines are suspended: their timers stand still.
	Doze Kind = "doze"
	// Kill: the client's process dies, and is not started again.
	Kill Kind = "kill"
	// Replay: somebody between client and node sends the last Size commands of
	// their connection once more, on a connection of its own. It does no harm,
	// except that locks may be left behind until their TTL is over.
	Replay Kind = "replay"
)

// The faults that the protocol does not claim to survive. Only runs that
// expect a violation have them.
const (
	// StepAhead: the node's clock jumps ahead Size milliseconds.
	StepAhead Kind = "stepahead"
	// Forget: the node loses its locks (not its counters) and goes on as if
	// nothing had happened.
	Forget Kind = "forget"
)

const (
	ttlUnit     = 1800 * time.Millisecond
	millisecond = int(time.Millisecond)
)

// These assumptions about clocks and about nodes that lose data hold unless a fault breaks
// them.
const (
	// clockError is how far a node's time of day may be off at first.
	clockError = 200 * time.Millisecond
	// clockRate is by how many parts in a million a node's clock may be fast or
	// slow, compared with a client's. The protocol allows for 1 % of the TTL.
	clockRate = 9500
	// most and often: how far and how often a node's clock is set back.
	backMost, backOften = 250, 2
)

// longest is the longest TTL of the run, and the store's maximum.
func (s *Script) longest() time.Duration { return time.Duration(s.TTL) * ttlUnit }

// kind is the kind of a lock.
func (s *Script) kind(lock int) store.Kind {
	if s.Kinds == 0 {
		return store.Kind{}.Normal()
	}
	return [...]store.Kind{store.ReadWrite, store.Semaphore(3), store.Kind{}.Normal(), store.Semaphore(2)}[(s.Kinds-1+lock)%4]
}

// nodeTimeout is how long the store waits for a node's answer.
func (s *Script) nodeTimeout(ttl time.Duration) time.Duration {
	if s.NodeTimeout > 0 {
		return time.Duration(s.NodeTimeout) * time.Millisecond
	}
	return min(max(ttl/100, 20*time.Millisecond), 500*time.Millisecond)
}

// onlyKills reports whether processes that die are the only faults. Only then had every waiter
// a subscription on each node: a node hands the lock to others unseen.
func (s *Script) onlyKills() bool {
	return !slices.ContainsFunc(s.Faults, func(f Fault) bool { return f.Kind != Kill })
}

func (s *Script) span() time.Duration { return time.Duration(s.Span) * time.Second }

func (f *Fault) at() time.Duration   { return time.Duration(f.At * millisecond) }
func (f *Fault) last() time.Duration { return time.Duration(f.For * millisecond) }

// quarantine is for how long a node that lost data grants nothing,
// counted from its start: the longest TTL, by any clock, so that what it forgot
// has ended; and longer than a token can be ahead of the time of day that the
// node counts tokens from, which is a second, and the error of two clocks.
func (s *Script) quarantine() time.Duration {
	longest := s.longest()
	return max(longest+longest/50, 5*time.Second)
}

// String describes a fault for people.
func (f Fault) String() string {
	who := ""
	if f.Client > 0 {
		who += fmt.Sprintf(" c%d", f.Client)
	}
	if f.Node > 0 {
		who += fmt.Sprintf(" n%d", f.Node)
	}
	if who == "" {
		who = " everybody"
	}
	return fmt.Sprintf("%s%s at %v for %v, size %d", f.Kind, who, f.at(), f.last(), f.Size)
}

// check returns what is wrong with a script that was written by hand.
func (s *Script) check() error {
	for _, c := range []struct {
		name         string
		v, low, high int
	}{
		{"nodes", s.Nodes, 1, maxNodes}, {"clients", s.Clients, 1, maxClients}, {"workers", s.Workers, 1, maxWorkers},
		{"locks", s.Locks, 1, maxLocks}, {"ttl", s.TTL, 1, 100}, {"nodetimeout", s.NodeTimeout, 0, 60_000}, {"span", s.Span, 0, 100_000},
		{"kinds", s.Kinds, 0, 4}, {"crowd", s.Crowd, 0, maxCrowd},
	} {
		if c.v < c.low || c.v > c.high {
			return fmt.Errorf("%s is %d: it goes from %d to %d", c.name, c.v, c.low, c.high)
		}
	}
	if s.Crowd > 0 && s.Workers == maxWorkers {
		return fmt.Errorf("workers is %d: beside a crowd it goes to %d", s.Workers, maxWorkers-1)
	}
	if s.Operator && s.Roll {
		return errors.New("a script that rolls has no operator")
	}
	if s.Roll && s.Nodes != 4 {
		return fmt.Errorf("a script that rolls has 4 nodes, not %d", s.Nodes)
	}
	most := s.Clients
	if s.Operator {
		most += operators
	}
	for i, f := range s.Faults {
		if f.Client < 0 || f.Client > most || f.Node < 0 || f.Node > s.Nodes || f.At < 0 || f.For < 0 || f.Size < 0 && f.Kind != WallClock {
			return fmt.Errorf("fault %d (%s) names a client, a node or a time that does not exist", i, f.Kind)
		}
	}
	return nil
}

// Parse reads a script as String writes it.
func Parse(text string) (Script, error) {
	var s Script
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return s, fmt.Errorf("script: %w", err)
	}
	if err := s.check(); err != nil {
		return s, fmt.Errorf("script: %w", err)
	}
	return s, nil
}

// String is the script on one line.
func (s Script) String() string {
	b, err := json.Marshal(s)
	if err != nil {
		panic("sim: encoding numbers and strings failed: " + err.Error())
	}
	return string(b)
}
