package redisstore

import (
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

// command is one command in the protocol's encoding. It is encoded once, and the same
// bytes are sent to every node.
type command struct {
	script *script // that it calls, if any
	more   int     // number of leases that it is about, minus 1: see bundle
	bytes  []byte
	// noPushAt is the distance from the end of bytes to the no-push flag; 0 if there is
	// none.
	noPushAt int
	// slot of its lock, plus 1; 0 if it has none, or there is no cluster.
	slot int
	// repeats is set if the command may be lost, because it will be sent again anyway.
	repeats bool
	// question that the command asks, if encode made it.
	question driver.Question
}

// newCommand returns a command that calls no script.
func newCommand(words ...string) *command {
	return &command{bytes: resp.AppendCommand(nil, words...)}
}

// begin starts a call of s in c and reuses c's memory. The caller appends all keys and
// arguments of the script.
func (c *command) begin(s *script) []byte {
	c.script, c.more, c.noPushAt, c.repeats = s, 0, 0, false
	return append(c.bytes[:0], s.byHash...)
}

// beginMany is begin for a command about several leases. Each one beyond the first adds
// two keys, and as many arguments as the script says.
func (c *command) beginMany(s *script, more int) []byte {
	if more == 0 {
		return c.begin(s)
	}
	c.script, c.more, c.noPushAt, c.repeats = s, more, 0, false
	return appendBegin(c.bytes[:0], "EVALSHA", s.hash, s.keys+2*more, s.args+s.each*more)
}

// byText appends the same call with the script's text, from which the node learns the
// script.
func (c *command) byText(b []byte) []byte {
	s := c.script
	if c.more == 0 {
		b = append(b, s.byText...)
		return append(b, c.bytes[len(s.byHash):]...)
	}
	keys, args := s.keys+2*c.more, s.args+s.each*c.more
	b = appendBegin(b, "EVAL", s.text, keys, args)
	return append(b, c.bytes[len(appendBegin(nil, "EVALSHA", s.hash, keys, args)):]...)
}
