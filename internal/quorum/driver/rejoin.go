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
	a := k.begin(next, k.Clock.Now())
	a.mu.Lock()
	a.users++ // for as long as this goes on, whatever becomes of the attempt meanwhile
	a.core.BeginWait(k.config(next), next.TTL, a.start, true)
	a.queue = queued{waits: true, unclaimed: true, number: k.waiting.last.Add(1)}
	for i := range k.Nodes {
		a.queue.nodes[i].behind = true
	}
	a.mu.Unlock()
	k.enter(a)
	k.waiting.unclaimed.Add(1)
	k.releases(r.Owner)

	b := k.ballot(quorum.Release)
	b.leases, b.then = append(b.leases, r), a
	b.run(ctx)
	b.mu.Lock()
	err = b.result(ctx, 0)
	b.leave()
	a.mu.Lock()
	standing = err == nil && a.stands()
	a.leave()
	if standing = standing && !k.closing(); !standing {
		k.Abandon(next.Owner)
	}
	return standing, err
}

// with puts a call that asks for a, too; nil is nobody. It says what put does.
func (a *attempt) with(c Call, node int, put func(Call) error) error {
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
		a.unsent(node, quorum.Acquire, err)
	}
	return err
}

// stands says whether there may be a place for it at a majority of nodes. The mutex is
// held.
func (a *attempt) stands() bool {
	var may quorum.Set
	for i := range a.k.Nodes {
		if !a.queue.nodes[i].none {
			may |= quorum.SetOf(i)
		}
	}
	c := a.k.config(a.r)
	return c.HasQuorum(may)
}

// claim finds the attempt that Return has left for owner, if there is one, for whoever
// waits for it from now on.
func (k *Driver) claim(owner string, reason func(error)) *attempt {
	a := k.unclaimed(owner)
	if a == nil {
		return nil
	}
	a.mu.Lock()
	a.queue.reason = reason
	now := k.Clock.Now()
	for i := range k.Nodes {
		if s := &a.queue.nodes[i]; (s.none || s.missed) && a.core.Verdict() == quorum.Open {
			s.none, s.missed = false, false
			a.apply(quorum.Event{Kind: quorum.PushLost, Node: i}, now)
		}
	}
	a.inform(a.news())
	a.mu.Unlock()
	return a
}

// Abandon gives up what Return has left for owner, and says whether there was anything. It
// does not block: the nodes are told to release what is there, or may be.
func (k *Driver) Abandon(owner string) bool {
	a := k.unclaimed(owner)
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.leave()
	if a.core.Verdict() == quorum.Open {
		a.apply(quorum.Event{Kind: quorum.Cancel}, k.Clock.Now())
	}
	<-a.over
	k.depart(a)
	k.releases(owner)
	if a.core.Verdict() == quorum.Won { // or else that has seen to it
		for i := range k.Nodes {
			r := a.r
			r.Renewed = r.Renewed || a.core.Repeated()
			a.put(i, quorum.Release, k.Encode(Question{Op: quorum.Release, Lease: r, Tomb: true}, nil), false)
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
func (k *Driver) unclaimed(owner string) *attempt {
	w := &k.waiting
	if w.unclaimed.Load() == 0 { // as is usual
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
	if !a.queue.unclaimed || a.r.Owner != owner {
		return nil
	}
	a.queue.unclaimed = false
	w.unclaimed.Add(-1)
	return a
}

// returned completes the first answer of a node to an attempt that Return began. One
// that had nobody to stand behind knows nothing of it: it is asked again once somebody
// waits. The mutex is held.
func (a *attempt) returned(e quorum.Event, ans Reply) quorum.Event {
	s := &a.queue.nodes[e.Node]
	if !s.behind || e.Op != quorum.Acquire {
		return e
	}
	s.behind = false
	if ans.Report.Outcome != store.Absent {
		return e
	}
	e.Kind, e.RetryAfter = quorum.Unsent, expired
	if a.queue.unclaimed {
		s.none, e.RetryAfter = true, a.r.TTL
	}
	return e
}
