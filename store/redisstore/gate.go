package redisstore

import (
	"bytes"
	"strings"

	"github.com/leasehold-dev/leasehold/internal/nodemark"
)

// The scripts that grant end with three arguments about the mark; see scripts/gate.lua.
// The last two differ from node to node and are filled in as a command is sent.

// runPrint is how many characters of a run ID stand for it.
const runPrint = 12

// appendGate appends what gate has to know, for a node whose run is not known.
func appendGate(b []byte, print string) []byte {
	b = appendWord(b, print)
	b = appendWord(b, strings.Repeat(nodemark.Unknown, runPrint))
	return appendWord(b, "0")
}

// gated says whether a script ends with what gate has to know.
func (s *script) gated() bool {
	return s == guardedScript || s == resignScript || s == rejoinScript || s == healScript
}

// fillGate fills in, at the end of out where c is, which run of the server the connection
// leads to and whether we count a quarantine of our own. The mutex is held.
func (w *wire) fillGate(c *command, out []byte) {
	if !c.script.gated() {
		return
	}
	const tail = "\r\n$1\r\n0\r\n"
	at := len(out) - len(tail)
	if w.run != "" {
		copy(out[at-runPrint:at], w.run)
	}
	if w.n.leftLocked() > 0 {
		out[len(out)-len("0\r\n")] = '1'
	}
}

// runOf returns the fingerprint of the server's run, empty if it is not known.
func (n *node) runOf() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.server.runID) < runPrint {
		return ""
	}
	return n.server.runID[:runPrint]
}

// firstKey is the first key of a script's command.
func (c *command) firstKey() []byte {
	size, key, _ := bytes.Cut(c.bytes[len(c.script.byHash):], []byte("\r\n"))
	n := 0
	for _, digit := range size[1:] { // after a $
		n = 10*n + int(digit-'0')
	}
	return key[:n]
}
