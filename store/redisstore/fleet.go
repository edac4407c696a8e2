package redisstore

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// fleet is the nodes of a store, and how they belong together.
type fleet struct {
	core
	nodes    []*node // none in a cluster, whose members come and go
	size     int     // number of nodes
	voters   []voter // the nodes, or the router of a cluster alone
	topology topology

	arming  sync.Mutex    // see guard
	armed   atomic.Bool   // guard has nothing left to do
	joining chan struct{} // holds a value while servers join; see take
}

// voter is what has one vote on every lock: a node, or the router of a cluster,
// which passes a call on to the member that has the lock.
type voter interface {
	// put enqueues a call, and never blocks.
	put(c call, more bool) error
	Addr() string
}

// From this many calls in flight on, for one node or for all of several, senders first let
// others enqueue their calls. The numbers were measured with 1 to 256 goroutines. One
// server keeps up with several small writes; with five servers each write counts.
const manyForOne, manyForSeveral = 16, 8

// manyInFlight reports whether so many calls are in flight that the callers of those just
// answered are likely to send more at once.
func (s *fleet) manyInFlight() bool {
	if len(s.nodes) == 1 {
		return s.inFlight.Load() > manyForOne
	}
	return s.inFlight.Load() > manyForSeveral
}

// encoder returns the encoder of the store's questions.
func (s *fleet) encoder() script.Encoder {
	e := script.Encoder{GuardsAll: len(s.nodes) > 1, Several: len(s.nodes) > 1, Fingerprint: s.membership.Fingerprint, Channel: s.channel, Wall: s.wall}
	e.KeyOf = s.topology.keys()
	e.GuardsNone = e.KeyOf != nil
	return e
}

// encode implements Encode of driver.Driver.
func (s *fleet) encode(q driver.Question, old *script.Command) *script.Command {
	e := s.encoder()
	return e.Encode(q, old)
}

// bundle implements EncodeRenewals of driver.Driver.
func (s *fleet) bundle(leases []store.Lease, old *script.Command) (c *script.Command, n int) {
	e := s.encoder()
	return e.Bundle(leases, old)
}

// quorumConfig is which of the nodes of the quorum are enough.
func (s *fleet) quorumConfig() quorum.Config {
	return quorum.Config{Nodes: len(s.voters), Sets: s.membership.Sets}
}

// outcomes returns an outcome for each node, which has its name and says nothing yet.
func (s *fleet) outcomes() []store.NodeOutcome {
	nodes := make([]store.NodeOutcome, len(s.nodes))
	for i, n := range s.nodes {
		nodes[i].Node = n.Addr()
	}
	return nodes
}

// inspectCommand returns the command that inspects a lock.
func (s *fleet) inspectCommand(name string) *script.Command {
	e := s.encoder()
	return e.Inspect(name, s.guarded.Load())
}

// ask sends command to all nodes of the quorum, and calls each with every answer until all have
// answered or ctx ends.
func (s *fleet) ask(ctx context.Context, command *script.Command, timeout time.Duration, each func(looked)) error {
	return s.askFor(ctx, func(int) *script.Command { return command }, timeout, each)
}

// askFor is ask with a command for each node of the quorum.
func (s *fleet) askFor(ctx context.Context, command func(node int) *script.Command, timeout time.Duration, each func(looked)) error {
	p := make(poll, len(s.voters)) // with room for all, so that a late answer blocks nobody
	for i, v := range s.voters {
		if err := v.put(call{command: command(i), timeout: timeout, look: p}, false); err != nil {
			said := driver.PutOutcome(err)
			p <- looked{i, script.Reply{Outcome: said.Outcome, Err: said.Err}}
		}
	}
	for range s.voters {
		select {
		case l := <-p:
			each(l)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// guard makes a store with a single server check the mark, from the first lock on that
// requires it. New connections begin with the check; over the present one it is sent
// before the request that follows.
func (s *fleet) guard() error {
	if s.armed.Load() {
		return nil
	}
	s.arming.Lock()
	defer s.arming.Unlock()
	for _, n := range s.nodes {
		n.Mu.Lock()
		known := n.PipeLocked() == nil || n.server.RunID != "" || n.durable() == "asserted"
		if known {
			s.guarded.Store(true)
			n.guardLocked()
		}
		n.Mu.Unlock()
		if !known {
			said := store.NodeOutcome{Node: n.Addr(), Outcome: store.Refused, Err: membership.ErrUnidentified}
			return &store.QuorumError{Op: "acquire", Need: 1, Nodes: []store.NodeOutcome{said}}
		}
	}
	s.armed.Store(true)
	return nil
}

// guardLocked makes up for what the connection in use began without, if the server must now
// be checked for having forgotten leases: the server is to notify this client of replaced
// data, has the data that it had when the connection was made, and has a mark that fits.
// All of this is sent before what waits to be sent.
func (n *node) guardLocked() {
	s, ok := n.PipeLocked().Session().(*session)
	if !ok || !s.unguarded || !n.s.guarded.Load() || !marksLooked {
		return
	}
	s.unguarded = false
	behind := n.Waiting.Len()
	for _, c := range [...]*script.Command{trackCommand, infoCommand, n.arrivalLocked(true)} {
		if c != nil {
			n.s.enqueueLocked(&n.Peer, call{command: c, timeout: n.s.o.ConnectTimeout, to: nobody{}})
		}
	}
	n.toFrontLocked(n.Waiting.Len() - behind)
}

// lasts learns of the longest quarantine that any client has asked a node for. Other
// nodes may have forgotten it, and this client may have asked them for a shorter one.
func (s *fleet) lasts(from *node, quarantine resp.Value) {
	us, _ := quarantine.Number()
	d := time.Duration(min(us, 1<<50)) * time.Microsecond
	if d <= s.quarantine() {
		return
	}
	s.longest.Store(int64(d))
	from.log.Warn("other clients use a longer max_ttl, so quarantines last longer; configure all clients with the same max_ttl", "quarantine", d, "ours", s.o.Quarantine())
	for _, n := range s.nodes {
		n.Mu.Lock()
		if n != from && n.PipeLocked() != nil {
			n.lookLocked()
		}
		n.Mu.Unlock()
	}
}
