package fleet

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/node"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// Fleet is the nodes of a store, and how they belong together.
type Fleet struct {
	node.Shared
	Nodes  []*node.Node // none in a cluster, whose members come and go
	Voters []Voter      // the nodes, or the router of a cluster alone

	arming  sync.Mutex    // see Guard
	armed   atomic.Bool   // Guard has nothing left to do
	joining chan struct{} // holds a value while servers join; see Take
	allowed atomic.Int64  // the longest TTL that quarantines allow for, if it is more than MaxTTL
	raising sync.Mutex    // see Raise
}

// Init makes s ready for nodes.
func (s *Fleet) Init(o config.Config) {
	s.Shared.Init(o)
	s.Others, s.joining = s, make(chan struct{}, 1)
}

// MakeNodes makes the nodes of independent servers, which have that membership. Several of them abstain if
// they may have forgotten leases.
func (s *Fleet) MakeNodes(addrs []config.Address, l membership.List) {
	s.Size, s.Nodes, s.Membership = len(addrs), make([]*node.Node, len(addrs)), l
	s.Guarded.Store(s.Size > 1)
	s.armed.Store(s.Size > 1)
	for i, a := range addrs {
		s.Nodes[i] = node.New(i, a, &s.Shared)
		s.Voters = append(s.Voters, s.Nodes[i])
		s.Driver.Nodes = append(s.Driver.Nodes, s.Nodes[i])
	}
}

// Voter is what has one vote on every lock: a node, or the router of a cluster,
// which passes a call on to the member that has the lock.
type Voter interface {
	// Enqueue enqueues a call, and never blocks.
	Enqueue(c node.Call, more bool) error
	Addr() string
}

// QuorumConfig is which of the nodes of the quorum are enough.
func (s *Fleet) QuorumConfig() quorum.Config {
	return quorum.Config{Nodes: len(s.Voters), Sets: s.Membership.Sets}
}

// Outcomes returns an outcome for each node, which has its name and says nothing yet.
func (s *Fleet) Outcomes() []store.NodeOutcome {
	nodes := make([]store.NodeOutcome, len(s.Nodes))
	for i, n := range s.Nodes {
		nodes[i].Node = n.Addr()
	}
	return nodes
}

// Ask sends command to all nodes of the quorum, and calls each with every answer until all have
// answered or ctx ends.
func (s *Fleet) Ask(ctx context.Context, command *script.Command, timeout time.Duration, each func(node.Answer)) error {
	return s.AskFor(ctx, func(int) *script.Command { return command }, timeout, each)
}

// AskFor is Ask with a command for each node of the quorum.
func (s *Fleet) AskFor(ctx context.Context, command func(node int) *script.Command, timeout time.Duration, each func(node.Answer)) error {
	p := make(node.Poll, len(s.Voters)) // with room for all, so that a late answer blocks nobody
	for i, v := range s.Voters {
		if err := v.Enqueue(node.Call{Command: command(i), Timeout: timeout, Poll: p}, false); err != nil {
			said := driver.PutOutcome(err)
			p <- node.Answer{Node: i, Reply: script.Reply{Outcome: said.Outcome, Err: said.Err}}
		}
	}
	for range s.Voters {
		select {
		case l := <-p:
			each(l)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Guard makes a store with a single server check the mark, from the first lock on that
// requires it. New connections begin with the check; over the present one it is sent
// before the request that follows.
func (s *Fleet) Guard() error {
	if s.armed.Load() {
		return nil
	}
	s.arming.Lock()
	defer s.arming.Unlock()
	for _, n := range s.Nodes {
		if !n.Guard() {
			said := store.NodeOutcome{Node: n.Addr(), Outcome: store.Refused, Err: membership.ErrUnidentified}
			return &store.QuorumError{Op: "acquire", Need: 1, Nodes: []store.NodeOutcome{said}}
		}
	}
	s.armed.Store(true)
	return nil
}

// Heard implements node.Others.
func (s *Fleet) Heard(n *node.Node, is node.News) {
	if is.Replaced {
		s.recheckOmitted(n)
	}
	if is.Quarantine.Kind != 0 {
		s.lasts(n, is.Quarantine)
	}
	if is.Quarantined {
		s.askHowLong(n)
	}
	if s.Size > 1 {
		s.decideJoining()
	}
	s.adoptOmitted()
}

// Looked implements node.Others.
func (s *Fleet) Looked() { s.decideJoining() }

// Connected implements node.Others.
func (s *Fleet) Connected() { s.adoptOmitted() }
