package redisstore

import (
	"strconv"
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
)

// command is what a node is sent, written as the protocol wants it: once, and
// the same bytes go to every node.
type command struct {
	script *script // that it runs, if any
	more   int     // leases that it is about, besides the one: see bundle
	bytes  []byte
	// tells is how far from the end there is a 0 that says that the server can tell us
	// unasked what comes of it; 0: nothing comes of it then.
	tells int
	// slot that its lock is in, and 1 more; 0: it is about none, or there are no slots.
	slot int
	// repeats: it says what was said before, and if it is lost it will be said again.
	repeats bool
	// question that it asks, of a command that encode made.
	question driver.Question
}

// newCommand is one without a script.
func newCommand(words ...string) *command {
	c := &command{bytes: appendCount(nil, len(words))}
	for _, w := range words {
		c.bytes = appendWord(c.bytes, w)
	}
	return c
}

// begin starts the call of s in c, whose memory is used again. The keys and
// arguments of the script follow, all of them.
func (c *command) begin(s *script) []byte {
	c.script, c.more, c.tells, c.repeats = s, 0, 0, false
	return append(c.bytes[:0], s.byHash...)
}

// beginMany is begin of a command about more leases than one: for each of them
// there are two keys more, and as many arguments as the script says.
func (c *command) beginMany(s *script, more int) []byte {
	if more == 0 {
		return c.begin(s)
	}
	c.script, c.more, c.tells, c.repeats = s, more, 0, false
	return appendBegin(c.bytes[:0], "EVALSHA", s.hash, s.keys+2*more, s.args+s.each*more)
}

// byText appends the same call with the script's text, which the node then
// knows.
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

// appendMillis rounds up: a store may keep a lease longer than asked, never
// shorter.
func appendMillis(b []byte, d time.Duration) []byte {
	return appendNumber(b, uint64((d+time.Millisecond-1)/time.Millisecond))
}
