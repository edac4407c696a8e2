package redisstore

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/node"
)

// Stats is a snapshot of a store, for metrics.
type Stats struct {
	Nodes []NodeStats
}

// NodeStats describes one node as this client knows it. Nothing is sent to the node.
type NodeStats struct {
	// Node is the node's address.
	Node string
	// Err is why the node cannot be used. It is nil if the node can be used, or was not
	// tried yet.
	Err error
	// QuarantinedFor is how long the node will still grant nothing because it may have
	// forgotten leases, and Why is the reason. They are zero and nil if it is not in
	// quarantine.
	QuarantinedFor time.Duration
	Why            error
	// Waiting counts requests that were not sent yet, and InFlight those that were sent
	// and not answered yet.
	Waiting, InFlight int
	// Retained counts releases that a node could not receive or refused; they are sent
	// again until it has executed them. Dropped counts those that were discarded because
	// there were too many: the leases they would have ended last until their TTL expires.
	Retained int
	Dropped  uint64
}

// StatsOf returns the current state of a store on Redis: of its servers or, in a cluster, of the
// masters that are known to have slots. For another store there are no nodes. It does not block
// and is safe for concurrent use, even after Close.
func StatsOf(s *store.Store) Stats {
	var nodes []*node.Node
	switch e := s.Engine().(type) {
	case *engine:
		nodes = e.Nodes
	case *clusterEngine:
		nodes = e.r.Masters()
	}
	st := Stats{Nodes: make([]NodeStats, len(nodes))}
	for i, n := range nodes {
		st.Nodes[i] = statsOf(n)
	}
	return st
}

func statsOf(n *node.Node) NodeStats {
	n.Mu.Lock()
	defer n.Mu.Unlock()
	ns := NodeStats{Node: n.Addr(), Waiting: n.Waiting.Len()}
	ns.Retained, ns.Dropped = n.RetainedLocked()
	if _, why := n.DownLocked(); why != nil {
		ns.Err = driver.PutOutcome(why).Err
	}
	if w := n.PipeLocked(); w != nil {
		ns.InFlight = w.InFlightLocked()
	}
	if q := n.QuarantineLocked(); q != nil {
		ns.QuarantinedFor, ns.Why = q.Left, q
	}
	return ns
}
