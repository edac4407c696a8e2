package node

import (
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/internal/retain"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/conn"
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

// owed links a call to the retained release that it sends, and to those of the node that
// retains it.
type owed struct {
	by    *backlog
	entry *retain.Entry[leaseID, driver.Question]
}

// backlog is the releases that a node has yet to receive. It is guarded by the mutex
// of the node's peer.
type backlog struct {
	shared  *Shared
	peer    *conn.Peer[Call]
	encode  func(q driver.Question, old *script.Command) *script.Command
	settled *Bell // rings when a call is removed

	list   retain.List[leaseID, driver.Question]
	count  atomic.Int64 // number of entries in list
	resend *time.Timer  // calls resendDue
}

func (b *backlog) init() {
	b.list.Most = maxRetained
	b.resend = time.AfterFunc(time.Hour, b.resendDue)
	b.resend.Stop()
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
func (b *backlog) sendingLocked(c *script.Command) {
	if c.Script.Does(script.Takes) {
		b.list.Sending(idOf(c.Question.Lease))
	}
}

// unsentLocked records that c was not sent, and will not be.
func (b *backlog) unsentLocked(c Call, now time.Time) {
	s := c.Command.Script
	switch {
	case b.peer.ClosedLocked() || c.owed != nil:
	case s.Does(script.Frees):
		b.retainLocked(c.Command, now)
	case c.Command.Question.Op == quorum.Heal: // the node has been asked about this lease before, and may get it late
	case s.Does(script.Takes) && !c.Command.Question.Again:
		b.list.Untold(idOf(c.Command.Question.Lease))
		b.countLocked()
	}
}

// retainLocked retains the release that c asks for.
func (b *backlog) retainLocked(c *script.Command, now time.Time) {
	if !releasesRetained {
		return
	}
	q := toRetain(c.Question)
	if b.list.Keep(idOf(q.Lease), q, q.Lease.TTL, now) {
		b.countLocked()
		b.scheduleLocked(now)
	}
}

func (b *backlog) countLocked() { b.count.Store(int64(b.list.Len())) }

// answered handles the result of a release that was sent over the node of b.
func (b *backlog) answered(c Call, said script.Reply) {
	executed := said.Outcome == store.Granted || said.Outcome == store.WrongType
	if executed && c.owed == nil && b.count.Load() == 0 {
		return // the usual case
	}
	if o := c.owed; o != nil {
		if o.by == b && said.At == 0 {
			return // the connection was lost, and the entry still stands
		}
		b = o.by
	}
	b.peer.Mu.Lock()
	defer b.peer.Mu.Unlock()
	now := time.Now()
	switch {
	case b.peer.ClosedLocked():
	case c.owed != nil:
		b.list.Answered(c.owed.entry, executed, now)
	case executed:
		b.list.Forget(idOf(c.Command.Question.Lease))
	case !said.Sent: // a sent one was retained when the connection was lost
		b.retainLocked(c.Command, now)
	}
	b.countLocked()
	b.scheduleLocked(now)
}

// lostLocked retains the unanswered releases of a connection that is lost.
func (b *backlog) lostLocked(lost *conn.Pipe[Call]) {
	if b.peer.ClosedLocked() {
		return
	}
	now := time.Now()
	for c := range lost.AllLocked {
		if c.Command.Script.Does(script.Frees) && c.owed == nil {
			b.retainLocked(c.Command, now)
		}
	}
	b.list.Disconnected()
	b.peer.Waiting.Remove(func(c *Call) bool { // retained releases are enqueued again with the next connection
		if c.owed == nil || c.owed.by != b {
			return false
		}
		b.shared.Settled(1)
		b.settled.Ring()
		return true
	})
	if b.list.Len() > 0 {
		b.peer.Wake()
	}
}

// connectedLocked records that there is a connection to the run of the server.
func (b *backlog) connectedLocked(run string, now time.Time) {
	b.list.Connected(run, now)
	b.sendDueLocked(now)
}

// sendDueLocked enqueues the retained releases that are due, before all other calls.
func (b *backlog) sendDueLocked(now time.Time) {
	due := b.list.Due(now)
	b.countLocked()
	if len(due) > 0 {
		var queue conn.Queue[Call]
		for _, e := range due {
			c := Call{Command: b.encode(e.What, nil), Timeout: b.shared.NodeTimeout(e.What.Lease.TTL), To: Nobody{}, Tag: int(quorum.Release), owed: &owed{b, e}}
			b.shared.InFlight.Add(1)
			queue.Push(c)
		}
		waiting := &b.peer.Waiting
		for c, ok := waiting.Pop(); ok; c, ok = waiting.Pop() {
			queue.Push(c)
		}
		*waiting = queue
		b.peer.Wake()
	}
	b.scheduleLocked(now)
}

// scheduleLocked has resendDue called when a retained release is due again, or when the
// node may reconnect for one.
func (b *backlog) scheduleLocked(now time.Time) {
	var retry time.Time
	if at, why := b.peer.DownLocked(); why != nil {
		retry = at
	}
	b.scheduleAfterLocked(now, retry)
}

// scheduleAfterLocked is scheduleLocked for a node that may not reconnect before retry.
func (b *backlog) scheduleAfterLocked(now, retry time.Time) {
	at, ok := b.list.Next()
	if at.Before(retry) {
		at = retry
	}
	if ok {
		b.resend.Reset(max(at.Sub(now), 1))
	}
}

// resendDue enqueues what is due, or wakes the node so that it connects.
func (b *backlog) resendDue() {
	b.peer.Mu.Lock()
	defer b.peer.Mu.Unlock()
	switch {
	case b.peer.ClosedLocked():
	case b.peer.PipeLocked() == nil:
		b.peer.Wake()
	default:
		b.sendDueLocked(time.Now())
	}
}
