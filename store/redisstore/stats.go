package redisstore

import "time"

// Stats are what an operator may want to see of a Store in use, for metrics.
type Stats struct {
	Nodes []NodeStats
}

// NodeStats are about one node, as this client knows it: nothing is asked.
type NodeStats struct {
	// Node is its address.
	Node string
	// Err is why it can not be used, nil if it can or was not tried yet.
	Err error
	// QuarantinedFor is how long it still grants nothing, because it may have
	// forgotten leases; Why says what happened to it. Zero and nil otherwise.
	QuarantinedFor time.Duration
	Why            error
	// Waiting requests have not been sent, those in flight not been answered.
	Waiting, InFlight int
	// Retained releases are sent again until the node has executed them: it was away,
	// or answered with an error. Dropped is how many were given up because there were
	// too many; what they would have ended lasts until its TTL is over.
	Retained int
	Dropped  uint64
}

// Stats returns the present state. It does not block, and is safe for
// concurrent use, after Close too.
func (s *Store) Stats() Stats {
	st := Stats{Nodes: make([]NodeStats, len(s.nodes))}
	for i, n := range s.nodes {
		st.Nodes[i] = n.stats()
	}
	return st
}

// Stats is Store.Stats for the masters that have slots, as far as is known.
func (c *Cluster) Stats() Stats {
	var st Stats
	for _, n := range c.r.masters() {
		st.Nodes = append(st.Nodes, n.stats())
	}
	return st
}

func (n *node) stats() NodeStats {
	n.mu.Lock()
	defer n.mu.Unlock()
	ns := NodeStats{Node: n.Addr(), Waiting: n.waiting.n, Retained: n.retained.Len(), Dropped: n.retained.Dropped()}
	if n.down != nil {
		ns.Err = n.down.Err
	}
	if n.wire != nil {
		ns.InFlight = n.wire.flight.n
	}
	if left := n.leftLocked(); left > 0 {
		ns.QuarantinedFor, ns.Why = left, &quarantineError{n.shut.why, left}
	}
	return ns
}
