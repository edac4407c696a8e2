package sim

import (
	"bytes"
	"time"
)

// offer is a free lock of which a node notified one barging waiter. No other waiter is
// notified. If that waiter cannot be reached, it keeps the lock from others for as long as a
// waiter that was handed the lock.
type offer struct {
	owner int
	until time.Duration
}

// pushes takes in the push messages of the node on one of its connections.
func (n *node) pushes(b []byte) {
	_, after, ok := bytes.Cut(b, []byte("free "))
	if !ok {
		return
	}
	owner, _, _ := bytes.Cut(after, []byte("\r\n"))
	number := n.w.hist.number(string(owner))
	if o := n.w.owner(number); o.lock >= 0 {
		n.offered[o.lock] = offer{owner: number, until: n.w.now() + o.ttl}
	}
}

// offeredInVain reports whether a lock is offered to a waiter that cannot take it.
func (i *idleness) offeredInVain(n *node, lock int) bool {
	o := n.offered[lock]
	if o.until <= i.w.now() {
		return false
	}
	to := i.w.clients[i.w.owner(o.owner).client]
	return !i.settled(to) || !i.reachable(to, n)
}
