package driver

import (
	"context"
	"maps"
	"slices"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// A place in line that is taken while the lock is released is an attempt like any
// other, but for that nobody waits for what becomes of it yet, and that it does not
// ask a node again at which it found nobody to stand behind. To the protocol it is a
// release, and a request to wait that follows it at once.

// ReleaseAndRejoin ends the lease of r and leaves a place in line for next; see store.Returner.
// The requests have been checked.
func (k *Driver) ReleaseAndRejoin(ctx context.Context, r, next store.Request) (standing bool, err error) {
	a := k.newAttempt(next, k.Clock.Now())
	a.mu.Lock()
	a.users++ // for as long as this goes on, whatever becomes of the attempt meanwhile
	a.core.BeginWait(k.config(next), next.TTL, a.start, true)
	a.waiting = waitState{waits: true, reserved: true, number: k.waiting.last.Add(1)}
	for i := range k.Nodes {
		a.waiting.nodes[i].onlyIfHeld = true
	}
	a.mu.Unlock()
	k.register(a)
	k.waiting.reserved.Add(1)
	k.noteRelease(r.Owner)

	b := k.newBallot(quorum.Release)
	b.leases, b.then = append(b.leases, r), a
	b.run(ctx)
	b.mu.Lock()
	err = b.resultLocked(ctx, 0)
	b.doneLocked()
	a.mu.Lock()
	standing = err == nil && a.mayQueueLocked()
	a.doneLocked()
	if standing = standing && !k.closing(); !standing {
		k.Abandon(next.Owner)
	}
	return standing, err
}

// with puts a call that asks for a, too; nil is nobody. It says what put does.
func (a *attempt) putWith(c Call, node int, put func(Call) error) error {
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

// stands says whether there may be a place for it at a majority of nodes. The mutex is
// held.
func (a *attempt) mayQueueLocked() bool {
	var may quorum.Set
	for i := range a.k.Nodes {
		if !a.waiting.nodes[i].noPlace {
			may |= quorum.SetOf(i)
		}
	}
	c := a.k.config(a.r)
	return c.HasQuorum(may)
}

// claim finds the attempt that Return has left for owner, if there is one, for whoever
// waits for it from now on.
func (k *Driver) takeReserved(owner string, reason func(error)) *attempt {
	a := k.findReserved(owner)
	if a == nil {
		return nil
	}
	a.mu.Lock()
	a.waiting.reason = reason
	now := k.Clock.Now()
	for i := range k.Nodes {
		if s := &a.waiting.nodes[i]; (s.noPlace || s.pushLost) && a.core.Verdict() == quorum.Open {
			s.noPlace, s.pushLost = false, false
			a.applyLocked(quorum.Event{Kind: quorum.PushLost, Node: i}, now)
		}
	}
	a.reportLocked(a.newsLocked())
	a.mu.Unlock()
	return a
}

// Abandon gives up what Return has left for owner, and says whether there was anything. It
// does not block: the nodes are told to release what is there, or may be.
func (k *Driver) Abandon(owner string) bool {
	a := k.findReserved(owner)
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.doneLocked()
	if a.core.Verdict() == quorum.Open {
		a.applyLocked(quorum.Event{Kind: quorum.Cancel}, k.Clock.Now())
	}
	<-a.over
	k.unregisterLocked(a)
	k.noteRelease(owner)
	if a.core.Verdict() == quorum.Won { // or else that has seen to it
		for i := range k.Nodes {
			r := a.r
			r.Renewed = r.Renewed || a.core.Repeated()
			a.putLocked(i, quorum.Release, k.Encode(Question{Op: quorum.Release, Lease: r, Tomb: true}, nil), false)
		}
	}
	return true
}

// AbandonAll does so for all owners: nobody will come back.
func (k *Driver) AbandonAll() {
	w := &k.waiting
	w.mu.Lock()
	owners := slices.Collect(maps.Keys(w.byOwner))
	w.mu.Unlock()
	for _, owner := range owners {
		k.Abandon(owner)
	}
}

// unclaimed finds what Return has left for owner, and makes it whoever's who asks.
func (k *Driver) findReserved(owner string) *attempt {
	w := &k.waiting
	if w.reserved.Load() == 0 { // as is usual
		return nil
	}
	w.mu.Lock()
	a := w.byOwner[owner]
	w.mu.Unlock()
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.waiting.reserved || a.r.Owner != owner {
		return nil
	}
	a.waiting.reserved = false
	w.reserved.Add(-1)
	return a
}

// returned completes the first answer of a node to an attempt that Return began. One
// that had nobody to stand behind knows nothing of it: it is asked again once somebody
// waits. The mutex is held.
func (a *attempt) rejoinEventLocked(e quorum.Event, ans Reply) quorum.Event {
	s := &a.waiting.nodes[e.Node]
	if !s.onlyIfHeld || e.Op != quorum.Acquire {
		return e
	}
	s.onlyIfHeld = false
	if ans.Report.Outcome != store.Absent {
		return e
	}
	e.Kind, e.RetryAfter = quorum.Unsent, afterExpiry
	if a.waiting.reserved {
		s.noPlace, e.RetryAfter = true, a.r.TTL
	}
	return e
}
