package stories

import (
	"fmt"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/proof/modelnode"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
)

// modelNode is a server as internal/proof/modelnode has it, with a clock that can be
// set. It keeps one lock.
type modelNode struct {
	number int

	mu    sync.Mutex
	lock  modelnode.Lock[string]
	ahead time.Duration
}

func modelNodes(n int) []*modelNode {
	all := make([]*modelNode, n)
	for i := range all {
		all[i] = &modelNode{number: i + 1}
	}
	return all
}

// setAhead sets the node's clock.
func (n *modelNode) setAhead(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ahead = d
}

// now is the node's clock. The mutex is held.
func (n *modelNode) now() clock.Instant { return modelNow().Add(n.ahead) }

// setNX is SET lock owner NX PX ttl, and says whether it was OK.
func (n *modelNode) setNX(owner string, ttl time.Duration) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, _, held := n.lock.Holder(n.now()); held {
		return false
	}
	n.lock = modelnode.Lock[string]{Owner: owner, Expiry: n.now().Add(ttl)}
	return true
}

// apply does what a client of ours asks.
func (n *modelNode) apply(q driver.Question) driver.Reply {
	n.mu.Lock()
	defer n.mu.Unlock()
	rules, now, r := modelnode.Shipped(), n.now(), q.Lease
	var a modelnode.Answer[string]
	switch q.Op {
	case quorum.Acquire:
		n.lock, a = n.lock.Acquire(rules, modelnode.Ask[string]{Owner: r.Owner, TTL: r.TTL, Propose: uint64(modelNow() / 1000)}, now)
	case quorum.Confirm:
		n.lock, a = n.lock.Confirm(rules, r.Owner, q.Token, now)
	case quorum.Extend:
		n.lock, a = n.lock.Extend(rules, r.Owner, r.TTL, now)
	case quorum.Release: // nothing is late here, so it needs to leave no tombstone
		if o, _, _ := n.lock.Holder(now); o == r.Owner {
			n.lock.Owner, n.lock.Expiry = "", 0
		}
	default: // what this story needs no node for
		a.Verdict = modelnode.Taken
	}
	switch {
	case a.Verdict == modelnode.Done:
		return driver.Reply{Kind: quorum.Yes, Token: a.Token, Report: store.NodeOutcome{Outcome: store.Granted}}
	case a.Verdict == modelnode.Taken && a.Holder != "":
		return driver.Reply{Kind: quorum.No, Report: store.NodeOutcome{Outcome: store.Taken, Holder: store.Holder{Owner: a.Holder}, ExpiresIn: a.ExpiresIn}}
	}
	return driver.Reply{Kind: quorum.No, Report: store.NodeOutcome{Outcome: store.Absent}}
}

// modelLink is one client's connection to a node.
type modelLink struct {
	node  *modelNode
	index int
	cut   bool // nothing gets through
	calls chan driver.Call[driver.Question]
}

// Addr implements driver.Node.
func (l *modelLink) Addr() string { return fmt.Sprint("node ", l.node.number) }

// Flush implements driver.Node: what is put is on its way.
func (l *modelLink) Flush() {}

// Put implements driver.Node.
func (l *modelLink) Put(c driver.Call[driver.Question]) error {
	if l.cut {
		return fmt.Errorf("node %d cannot be reached", l.node.number)
	}
	select {
	case l.calls <- c:
		return nil
	default:
		return fmt.Errorf("too much is waiting for node %d", l.node.number)
	}
}

// serve answers until quit is closed.
func (l *modelLink) serve(quit <-chan struct{}) {
	for {
		select {
		case c := <-l.calls:
			c.To.Receive(l.index, c.Tag, l.node.apply(c.Payload))
		case <-quit:
			return
		}
	}
}
