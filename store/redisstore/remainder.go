package redisstore

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// remainder is how long a lease that was broken lasts on each node. That is known once a node has
// broken it: until then, the lease can still be renewed there.
type remainder struct {
	has  quorum.Set
	left []time.Duration
}

func newRemainder(nodes int) *remainder { return &remainder{left: make([]time.Duration, nodes)} }

// note takes the reply of a node that broke the lease, or didn't have it.
func (m *remainder) note(a looked) {
	if left := a.Left(); left > 0 {
		m.has |= quorum.SetOf(a.node)
		m.left[a.node] = left
	}
}

// of returns how long a majority can have the lease, and a moment if it has ended since. said is
// what the nodes said.
func (m *remainder) of(cfg quorum.Config, said []store.NodeOutcome) time.Duration {
	return max(cfg.Tally(m.has, silentAmong(said), m.left).ExpiresIn, time.Millisecond)
}
