package redisstore

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/internal/retain"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// Releases that a node could not receive or did not execute are retained and sent first
// over its next connection. No other part of the client repeats them once a majority has
// answered, and a lease that is left behind blocks the lock until its TTL expires.
// Sending a release twice does no harm: an owner is never reused, or the release names
// the attempt that it is about. Package retain decides what is retained, and until when.

// maxRetained bounds the releases retained for one node.
const maxRetained = 4096

// leaseID identifies the lease that a release is about.
type leaseID struct{ name, owner, attempt string }

func idOf(r store.Lease) leaseID { return leaseID{r.Name, r.Owner, r.Attempt} }

// owed links a call to the retained release that it sends, and to the node that retains
// it.
type owed struct {
	by    *node
	entry *retain.Entry[leaseID, driver.Question]
}

// toRetain returns the part of a release that is still useful later: it ends the lease
// and gives up its place. The lock goes to whichever waiter is first by then. The release
// must not enqueue the next attempt: that attempt asks for its place itself or gives it
// up, and a place taken here could be handed the lock when nobody waits any more. For an
// owner that is not new, the release ends only a grant that no other attempt knows about.
func toRetain(q driver.Question) driver.Question {
	if !retainedIsPlain {
		return q
	}
	q.Next, q.GivesWay, q.To = nil, false, ""
	q.Undo = q.Lease.Attempt != ""
	return q
}

// sendingLocked records that c is about to be sent.
func (n *node) sendingLocked(c *script.Command) {
	if c.Script.Takes() {
		n.retained.Sending(idOf(c.Question.Lease))
	}
}

// unsentLocked records that c was not sent, and will not be.
func (n *node) unsentLocked(c call, now time.Time) {
	s := c.command.Script
	switch {
	case n.closed || c.owed != nil:
	case s.Frees():
		n.retainLocked(c.command, now)
	case s == script.Heal: // the node has been asked about this lease before, and may get it late
	case s.Takes() && !c.command.Question.Again:
		n.retained.Untold(idOf(c.command.Question.Lease))
		n.retains.Store(int64(n.retained.Len()))
	}
}

// retainLocked retains the release that c asks for.
func (n *node) retainLocked(c *script.Command, now time.Time) {
	q := toRetain(c.Question)
	if n.retained.Keep(idOf(q.Lease), q, q.Lease.TTL, now) {
		n.retains.Store(int64(n.retained.Len()))
		n.scheduleResendLocked(now)
	}
}

// answered handles the result of a release.
func (n *node) answered(c call, r script.Reply) {
	executed := r.Outcome == store.Granted || r.Outcome == store.WrongType
	if executed && c.owed == nil && n.retains.Load() == 0 {
		return // the usual case
	}
	if o := c.owed; o != nil {
		if o.by == n && r.At == 0 {
			return // the connection was lost, and the entry still stands
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
		n.retained.Forget(idOf(c.command.Question.Lease))
	case !r.Sent: // a sent one was retained when the connection was lost
		n.retainLocked(c.command, now)
	}
	n.retains.Store(int64(n.retained.Len()))
	n.scheduleResendLocked(now)
}

// disconnectedLocked retains the unanswered releases of w, which is lost.
func (n *node) disconnectedLocked(w *wire) {
	if n.closed {
		return
	}
	now := time.Now()
	for _, q := range []*queue[call]{&w.again, &w.flight} {
		for c := range q.all {
			if c.command.Script.Frees() && c.owed == nil {
				n.retainLocked(c.command, now)
			}
		}
	}
	n.retained.Disconnected()
	for range n.waiting.n { // retained releases are enqueued again with the next connection
		c, _ := n.waiting.pop()
		if c.owed != nil && c.owed.by == n {
			n.s.settled()
			n.settled.ring()
			continue
		}
		n.waiting.push(c)
	}
	if n.retained.Len() > 0 {
		n.wake()
	}
}

// connectedLocked records that there is a connection.
func (n *node) connectedLocked() {
	now := time.Now()
	n.retained.Connected(n.server.RunID, now)
	n.sendRetainedLocked(now)
}

// sendRetainedLocked enqueues the retained releases that are due, before all other calls.
func (n *node) sendRetainedLocked(now time.Time) {
	due := n.retained.Due(now)
	n.retains.Store(int64(n.retained.Len()))
	if len(due) > 0 {
		var line queue[call]
		for _, e := range due {
			c := call{command: n.s.encode(e.What, nil).(*script.Command), timeout: n.s.o.TimeoutFor(e.What.Lease.TTL), to: nobody{}, tag: int(quorum.Release), owed: &owed{n, e}}
			n.s.inFlight.Add(1)
			line.push(c)
		}
		for c, ok := n.waiting.pop(); ok; c, ok = n.waiting.pop() {
			line.push(c)
		}
		n.waiting = line
		n.wake()
	}
	n.scheduleResendLocked(now)
}

// scheduleResendLocked has resendDue called when a retained release is due again, or when
// the node may reconnect for one.
func (n *node) scheduleResendLocked(now time.Time) {
	at, ok := n.retained.Next()
	if n.wire == nil && n.down != nil && at.Before(n.retryAt) {
		at = n.retryAt
	}
	if ok {
		n.resend.Reset(max(at.Sub(now), 0))
	}
}

// resendDue enqueues what is due, or wakes the node so that it connects.
func (n *node) resendDue() {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.closed:
	case n.wire == nil:
		n.wake()
	default:
		n.sendRetainedLocked(time.Now())
	}
}
