package redisstore

import (
	"strconv"
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
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
	c := &command{bytes: appendCount(nil, len(words))}
	for _, w := range words {
		c.bytes = appendWord(c.bytes, w)
	}
	return c
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

func appendCount(b []byte, words int) []byte {
	b = append(b, '*')
	b = strconv.AppendInt(b, int64(words), 10)
	return append(b, '\r', '\n')
}

// appendWord appends one word, which is given in parts.
func appendWord(b []byte, parts ...string) []byte {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	b = append(b, '$')
	b = strconv.AppendInt(b, int64(n), 10)
	b = append(b, '\r', '\n')
	for _, p := range parts {
		b = append(b, p...)
	}
	return append(b, '\r', '\n')
}

func appendNumber(b []byte, n uint64) []byte {
	var digits [20]byte
	return appendWord(b, string(strconv.AppendUint(digits[:0], n, 10)))
}

// appendMillis rounds up: a store may keep a lease longer than asked, but never shorter.
func appendMillis(b []byte, d time.Duration) []byte {
	return appendNumber(b, uint64((d+time.Millisecond-1)/time.Millisecond))
}
