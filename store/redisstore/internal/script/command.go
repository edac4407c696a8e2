package script

import (
	"bytes"

	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

// Command is one command in the protocol's encoding. It is encoded once, and the same
// bytes are sent to every node.
type Command struct {
	Script *Script // that it calls, if any
	More   int     // number of leases that it is about, minus 1: see Encoder.Bundle
	Bytes  []byte
	// NoPushAt is the distance from the end of bytes to the no-push flag; 0 if there is
	// none.
	NoPushAt int
	// Slot of its lock, plus 1; 0 if it has none, or there is no cluster.
	Slot int
	// Repeats is set if the command may be lost, because it will be sent again anyway.
	Repeats bool
	// Question that the command asks, if an Encoder made it.
	Question driver.Question
}

// NewCommand returns a command that calls no script.
func NewCommand(words ...string) *Command {
	return &Command{Bytes: resp.AppendCommand(nil, words...)}
}

// Begin starts a call of s in c and reuses c's memory. The caller appends all keys and
// arguments of the script.
func (c *Command) Begin(s *Script) []byte {
	c.Script, c.More, c.NoPushAt, c.Repeats = s, 0, 0, false
	return append(c.Bytes[:0], s.byHash...)
}

// beginMany is Begin for a command about several leases. Each one beyond the first adds
// two keys, and as many arguments as the script says.
func (c *Command) beginMany(s *Script, more int) []byte {
	if more == 0 {
		return c.Begin(s)
	}
	c.Script, c.More, c.NoPushAt, c.Repeats = s, more, 0, false
	return appendBegin(c.Bytes[:0], "EVALSHA", s.Hash, s.Keys+2*more, s.Args+s.each*more)
}

// ByText appends the same call with the script's text, from which the node learns the
// script.
func (c *Command) ByText(b []byte) []byte {
	s := c.Script
	if c.More == 0 {
		b = append(b, s.byText...)
		return append(b, c.Bytes[len(s.byHash):]...)
	}
	keys, args := s.Keys+2*c.More, s.Args+s.each*c.More
	b = appendBegin(b, "EVAL", s.Text, keys, args)
	return append(b, c.Bytes[len(appendBegin(nil, "EVALSHA", s.Hash, keys, args)):]...)
}

// FirstKey returns the first key of a script's command.
func (c *Command) FirstKey() []byte {
	size, key, _ := bytes.Cut(c.Bytes[len(c.Script.byHash):], []byte("\r\n"))
	n := 0
	for _, digit := range size[1:] { // skips the $
		n = 10*n + int(digit-'0')
	}
	return key[:n]
}

// Bytes returns the encodings of some commands.
func Bytes(commands ...*Command) [][]byte {
	all := make([][]byte, len(commands))
	for i, c := range commands {
		all[i] = c.Bytes
	}
	return all
}
