package script

import (
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

// Command is one command in the protocol's encoding. It is encoded once, and the same
// bytes are sent to every node.
type Command struct {
	Script *Script // that it calls, if any
	More   int     // number of leases that it is about, minus 1: see Encoder.Bundle
	Bytes  []byte
	// NoPushAt is the distance from the end of Bytes to the no-push flag, with which the place
	// in the queue begins; 0 if there is none. PlaceEnd is the distance to the end of the place.
	NoPushAt, PlaceEnd int
	// Where the keys, the mark's key, the arguments and the argument about the mark begin in
	// Bytes; see StepList. A missing part begins where the next one does. In a cluster there
	// is no mark, and a release has the key of WholeEnd in its place.
	keysAt, markAt, argsAt, gateAt int
	// restAt is where the keys after the first one begin in a plain request, which is from a new
	// owner that does not wait; see calls/steps.lua. It is 0 for other requests.
	restAt int
	// print is the fingerprint of the membership, for a command with the mark.
	print string
	// proposed is the token that an acquire of a mutex proposes; 0 for other commands.
	proposed uint64
	// lock is a hash of the key of its lock, for a command about a single mutex, and 0 for others.
	// Locks with the same hash pass for one lock, which only costs speed; see StepList.twice.
	lock uint64
	// Slot of its lock, plus 1; 0 if it has none, or there is no cluster.
	Slot int
	// Repeats is set if the command may be lost, because it will be sent again anyway.
	Repeats bool
	// Question that the command asks, if an Encoder made it.
	Question driver.Question
}

// setPlace sets where the place is in Bytes: from begin to end, or nowhere if begin is 0.
func (c *Command) setPlace(begin, end int) {
	if begin > 0 {
		c.NoPushAt, c.PlaceEnd = len(c.Bytes)-begin, len(c.Bytes)-end
	}
}

// NewCommand returns a command that calls no script.
func NewCommand(words ...string) *Command {
	return &Command{Bytes: resp.AppendCommand(nil, words...)}
}

// Begin starts a call of s in c and reuses c's memory. The caller appends all keys and
// arguments of the script.
func (c *Command) Begin(s *Script) []byte {
	return c.begin(s, 0, append(c.Bytes[:0], s.byHash()...))
}

// begin forgets what c was before. The bytes b are what the call begins with.
func (c *Command) begin(s *Script, more int, b []byte) []byte {
	c.Script, c.More, c.NoPushAt, c.PlaceEnd, c.Repeats, c.keysAt, c.restAt, c.proposed, c.lock = s, more, 0, 0, false, len(b), 0, 0, 0
	return b
}

// beginMany is Begin for a command about several leases. Each one beyond the first adds
// as many keys and arguments as the script says.
func (c *Command) beginMany(s *Script, more int) []byte {
	if more == 0 {
		return c.Begin(s)
	}
	return c.begin(s, more, appendBegin(c.Bytes[:0], "EVALSHA", s.Hash(), s.Keys+s.eachKeys*more, s.Args+s.each*more))
}

// ByText appends the same call with the script's text, from which the node learns the
// script. A command that calls none is appended as it is.
func (c *Command) ByText(b []byte) []byte {
	s := c.Script
	if s == nil {
		return append(b, c.Bytes...)
	}
	keys, args := s.Keys+s.eachKeys*c.More, s.Args+s.each*c.More
	b = appendBegin(b, "EVAL", s.Text(), keys, args)
	return append(b, c.Bytes[len(appendBegin(nil, "EVALSHA", s.Hash(), keys, args)):]...)
}

// FillPlace patches the command at the end of b: it sets the no-push flag, if the
// connection cannot receive pushes, or fills in the channel of the connection, unless that
// is empty. In a cluster the last field of a place, its channel, depends on the connection.
func (c *Command) FillPlace(b []byte, noPush bool, channel string) {
	if c.NoPushAt > 0 {
		c.fillPlace(b[:len(b)-(len(c.Bytes)-c.gateAt)], noPush, channel)
	}
}

// fillPlace is FillPlace for a command without the argument about the mark.
func (c *Command) fillPlace(b []byte, noPush bool, channel string) {
	gate := len(c.Bytes) - c.gateAt
	switch {
	case c.NoPushAt == 0:
	case noPush:
		b[len(b)+gate-c.NoPushAt] = '1'
	case channel != "":
		copy(b[len(b)+gate-c.PlaceEnd-len(channel):], channel)
	}
}

// Bytes returns the encodings of some commands.
func Bytes(commands ...*Command) [][]byte {
	all := make([][]byte, len(commands))
	for i, c := range commands {
		all[i] = c.Bytes
	}
	return all
}
