package redisstore

import (
	"bytes"
	"strings"

	"github.com/leasehold-dev/leasehold/internal/nodemark"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

// The scripts that grant end with three arguments about the mark; see scripts/gate.lua.
// The last two differ between nodes and are patched when a command is sent.

// runPrint is how many characters of a run ID identify a run.
const runPrint = 12

// appendGate appends the arguments about the mark, for a node whose run is not known.
func appendGate(b []byte, print string) []byte {
	b = resp.AppendWord(b, print)
	b = resp.AppendWord(b, strings.Repeat(nodemark.Unknown, runPrint))
	return resp.AppendWord(b, "0")
}

// gated reports whether a script ends with these arguments.
func (s *script) gated() bool {
	return s == guardedScript || s == resignScript || s == rejoinScript || s == healScript
}

// fillGateLocked patches the arguments about the mark in the command c at the end of out: the
// run of the server that this connection leads to, and whether this client counts a
// quarantine of its own. The mutex is held.
func (w *wire) fillGateLocked(c *command, out []byte) {
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

// runOf returns the beginning of the server's run ID; empty if it is not known.
func (n *node) runOf() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.server.runID) < runPrint {
		return ""
	}
	return n.server.runID[:runPrint]
}

// firstKey returns the first key of a script's command.
func (c *command) firstKey() []byte {
	size, key, _ := bytes.Cut(c.bytes[len(c.script.byHash):], []byte("\r\n"))
	n := 0
	for _, digit := range size[1:] { // skips the $
		n = 10*n + int(digit-'0')
	}
	return key[:n]
}
