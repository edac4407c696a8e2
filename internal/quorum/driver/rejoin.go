package driver

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// A place that is taken with a release is an attempt like any other, with two
// differences: no caller waits for it yet, and it does not ask a node again that had no
// holder to queue behind. To the protocol it is a release followed at once by a request
// to wait.

// ReleaseAndRejoin ends the lease of r and leaves a place in the queue for next; see *store.Store.
// The requests have been checked.
func (k *Driver[P]) ReleaseAndRejoin(ctx context.Context, r store.ReleaseRequest, next store.WaitRequest) (queued bool, err error) {
	a := k.newAttempt(next, k.Clock.Now())
	a.users++ // keeps a from being reused until this returns
	a.core.BeginWait(k.config(next.Lease), next.TTL, a.start, true)
	a.waiting = waitState{waits: true, reserved: true, number: k.waiters.last.Add(1)}
	for i := range k.Nodes {
		a.waiting.nodes[i].onlyIfHeld = true
	}
	a.mu.Unlock()
	k.waiters.add(a)
	k.waiters.reserved.Add(1)

	b := k.newBallot(quorum.Release)
	b.leases, b.renewed, b.undo, b.then = append(b.leases, r.Lease), r.Renewed, r.Undo, a
	b.leaves = k.waiters.releasing(r.Owner, quorum.AllOf(len(k.Nodes)))
	b.runLocked(ctx)
	err = b.resultLocked(ctx, 0)
	b.doneLocked()
	a.mu.Lock()
	c := k.config(next.Lease)
	queued = err == nil && c.HasQuorum(a.waiting.mayQueueAt(len(k.Nodes)))
	a.doneLocked()
	if queued = queued && !k.closing(); !queued {
		k.Abandon(next.Owner)
	}
	return queued, err
}

// putWith puts a call whose Next is the first question of a, which may be nil.
func (a *attempt[P]) putWith(c Call[P], node int, put func(Call[P]) error) error {
	if a == nil {
		return put(c)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	c.Next = a
	err := put(c)
	if err == nil {
		a.users++
	} else {
		a.unsentLocked(node, quorum.Acquire, err)
	}
	return err
}

// takeReserved returns the attempt that ReleaseAndRejoin left for owner, or nil. The
// caller waits for it from now on.
func (k *Driver[P]) takeReserved(owner string, reason func(error)) *attempt[P] {
	a := k.waiters.takeReserved(owner)
	if a == nil {
		return nil
	}
	a.mu.Lock()
	a.waiting.reason = reason
	now := k.Clock.Now()
	a.armLocked(now)
	for i := range k.Nodes {
		if s := &a.waiting.nodes[i]; (s.noPlace || s.pushLost) && a.core.Verdict() == quorum.Open {
			s.noPlace, s.pushLost = false, false
			a.applyLocked(quorum.Event{Kind: quorum.PushLost, Node: i}, now)
		}
	}
	a.reportLocked()
	a.mu.Unlock()
	return a
}

// Abandon gives up the attempt that ReleaseAndRejoin left for owner, and reports whether
// there was one. It does not block: the nodes are told to release in the background.
func (k *Driver[P]) Abandon(owner string) bool {
	a := k.waiters.takeReserved(owner)
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.doneLocked()
	if a.core.Verdict() == quorum.Open {
		a.applyLocked(quorum.Event{Kind: quorum.Cancel}, k.Clock.Now())
	}
	<-a.over
	k.waiters.removeLocked(a)
	k.waiters.releasing(owner, 0)
	if a.core.Verdict() == quorum.Won { // a lost attempt has released everything
		for i := range k.Nodes {
			q := Question{Op: quorum.Release, Lease: a.r.Lease, Tombstone: true, Renewed: a.core.Repeated()}
			a.putLocked(i, quorum.Release, payloadOf(k, q), false)
		}
	}
	return true
}

// AbandonAll calls Abandon for all owners.
func (k *Driver[P]) AbandonAll() {
	for _, owner := range k.waiters.owners() {
		k.Abandon(owner)
	}
}

// mayQueueAt returns the nodes, of so many, where the attempt may have a place.
func (s *waitState) mayQueueAt(nodes int) (may quorum.Set) {
	for i := range nodes {
		if !s.nodes[i].noPlace {
			may |= quorum.SetOf(i)
		}
	}
	return may
}

// rejoinEvent completes the event of a node's first answer to an attempt that
// ReleaseAndRejoin began. A node without a holder gave no place: it is asked again once a
// caller waits. Until then it is asked no more often than after ttl.
func (s *waitState) rejoinEvent(e quorum.Event, said store.Outcome, ttl time.Duration) quorum.Event {
	n := &s.nodes[e.Node]
	if !n.onlyIfHeld || e.Op != quorum.Acquire {
		return e
	}
	n.onlyIfHeld = false
	if said != store.Absent {
		return e
	}
	e.Kind, e.RetryAfter = quorum.Unsent, afterExpiry
	if s.reserved {
		n.noPlace, e.RetryAfter = true, ttl
	}
	return e
}
