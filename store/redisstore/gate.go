package redisstore

import "github.com/leasehold-dev/leasehold/store/redisstore/internal/script"

// The scripts that grant end with three arguments about the mark; see gate.lua.
// The last two differ between nodes and are patched when a command is sent.

// fillGateLocked patches the arguments about the mark in the command c at the end of out:
// the run of the server that this connection leads to, and whether this client counts a
// quarantine of its own.
func (w *wire) fillGateLocked(c *script.Command, out []byte) {
	if !c.Script.Gated() {
		return
	}
	const tail = "\r\n$1\r\n0\r\n"
	at := len(out) - len(tail)
	if w.run != "" {
		copy(out[at-script.RunPrint:at], w.run)
	}
	if w.n.leftLocked() > 0 {
		out[len(out)-len("0\r\n")] = '1'
	}
}

// runOf returns the beginning of the server's run ID; empty if it is not known.
func (n *node) runOf() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.server.RunID) < script.RunPrint {
		return ""
	}
	return n.server.RunID[:script.RunPrint]
}
