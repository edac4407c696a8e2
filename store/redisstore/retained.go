package redisstore

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/internal/retain"
	"github.com/leasehold-dev/leasehold/store"
)

// Releases that a node could not be given, or did not execute, are retained and sent
// first over its next connection: nobody else repeats them where a majority has
// answered, and what is left behind keeps others from the lock until its TTL is over.
// To send one twice does no harm: an owner is never used again, or it is said which of
// its attempts is meant. What is retained,
// and until when, is decided by package retain.

// maxRetained releases at most are retained for one node.
const maxRetained = 4096

// leaseID names the lease that a release is about.
type leaseID struct{ name, owner, attempt string }

func idOf(r store.Request) leaseID { return leaseID{r.Name, r.Owner, r.Attempt} }

// owed is what a call sends that was retained, and by which node.
type owed struct {
	by    *node
	entry *retain.Entry[leaseID, driver.Question]
}

// toRetain is the part of a release that is still of use later: it ends the lease and
// gives up its place. The lock goes to whoever is first in line by then, and the next
// place that a release may ask for is its own attempt's to ask for again, or to give
// up: taken here, it could be handed the lock that nobody waits for any more. Of an owner
// that is not new it ends only what no other attempt knows of.
func toRetain(q driver.Question) driver.Question {
	q.Next, q.GivesWay, q.To = nil, false, ""
	q.Lease.Undo = q.Lease.Attempt != ""
	return q
}

// takes says whether a script may make a lease, or a place in line.
func (s *script) takes() bool {
	return s == acquireScript || s == guardedScript || s == healScript
}

// isTold takes in that c is about to be sent. The mutex is held.
func (n *node) isTold(c *command) {
	if c.script.takes() {
		n.retained.Told(idOf(c.question.Lease))
	}
}

// unsent takes in that c was not sent, and will not be. The mutex is held.
func (n *node) unsent(c call, now time.Time) {
	s := c.command.script
	switch {
	case n.closed || c.owed != nil:
	case s.frees():
		n.retain(c.command, now)
	case s.takes() && !c.command.question.Again:
		n.retained.Untold(idOf(c.command.question.Lease))
		n.retains.Store(int64(n.retained.Len()))
	}
}

// retain keeps the release that c asks for. The mutex is held.
func (n *node) retain(c *command, now time.Time) {
	q := toRetain(c.question)
	if n.retained.Keep(idOf(q.Lease), q, q.Lease.TTL, now) {
		n.retains.Store(int64(n.retained.Len()))
		n.recallAt(now)
	}
}

// answered takes in what became of a release.
func (n *node) answered(c call, r reply) {
	executed := r.outcome == store.Granted || r.outcome == store.WrongType
	if executed && c.owed == nil && n.retains.Load() == 0 {
		return // as is usual
	}
	if o := c.owed; o != nil {
		if o.by == n && r.at == 0 {
			return // the connection was lost, and what it was to send is known
		}
		n = o.by
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	switch {
	case n.closed:
	case c.owed != nil:
		n.retained.Answered(c.owed.entry, executed, now)
	case executed:
		n.retained.Forget(idOf(c.command.question.Lease))
	case !r.sent: // or else it was retained when the connection was lost
		n.retain(c.command, now)
	}
	n.retains.Store(int64(n.retained.Len()))
	n.recallAt(now)
}

// disconnected takes in that w is lost: the releases that it takes with it are retained.
// The mutex is held.
func (n *node) disconnected(w *wire) {
	if n.closed {
		return
	}
	now := time.Now()
	for _, q := range []*queue[call]{&w.again, &w.flight} {
		for c := range q.all {
			if c.command.script.frees() && c.owed == nil {
				n.retain(c.command, now)
			}
		}
	}
	n.retained.Disconnected()
	for range n.waiting.n { // those that were retained come again with the next connection
		c, _ := n.waiting.pop()
		if c.owed != nil && c.owed.by == n {
			n.s.inFlight.Add(-1)
			continue
		}
		n.waiting.push(c)
	}
	if n.retained.Len() > 0 {
		n.wake()
	}
}

// connected takes in that there is a connection. The mutex is held.
func (n *node) connected() {
	now := time.Now()
	n.retained.Connected(n.server.runID, now)
	n.tell(now)
}

// tell puts what is retained and due in front of the line. The mutex is held.
func (n *node) tell(now time.Time) {
	due := n.retained.Due(now)
	n.retains.Store(int64(n.retained.Len()))
	if len(due) > 0 {
		var line queue[call]
		for _, e := range due {
			c := call{command: n.s.encode(e.What, nil).(*command), timeout: n.s.o.nodeTimeout(e.What.Lease.TTL), to: nobody{}, tag: int(quorum.Release), owed: &owed{n, e}}
			n.s.inFlight.Add(1)
			line.push(c)
		}
		for c, ok := n.waiting.pop(); ok; c, ok = n.waiting.pop() {
			line.push(c)
		}
		n.waiting = line
		n.wake()
	}
	n.recallAt(now)
}

// recallAt has tellDue called when something that is retained is to be sent again, or
// a connection may be made for it. The mutex is held.
func (n *node) recallAt(now time.Time) {
	at, ok := n.retained.Next()
	if n.wire == nil && n.down != nil && at.Before(n.retryAt) {
		at = n.retryAt
	}
	if ok {
		n.recall.Reset(max(at.Sub(now), 0))
	}
}

// tellDue sends what is due, or has a connection made for it.
func (n *node) tellDue() {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.closed:
	case n.wire == nil:
		n.wake()
	default:
		n.tell(time.Now())
	}
}
