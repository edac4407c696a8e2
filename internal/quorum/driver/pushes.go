package driver

import (
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// OnGranted applies a push of a node: it has granted the lock to owner. It does not
// block. It returns the name of the lock, and nothing if the owner neither waits for it
// nor has it.
func (k *Driver[P]) OnGranted(node int, owner string, ans Reply) (name string) {
	waits := k.waiters.with(owner, func(a *attempt[P]) {
		at := k.receivedAt(ans)
		if ans.Stamp < a.start || ans.Stamp > at {
			return // no request of this attempt left then
		}
		if a.core.Verdict() == quorum.Lost {
			return
		}
		name = a.r.Name
		if a.core.Verdict() == quorum.Won {
			if ans.Token < a.core.Token() { // the majority has granted it; the waiter has not returned yet
				a.raiseNodeLocked(node)
			}
			return
		}
		e := quorum.Event{Kind: quorum.PushGranted, Node: node, Op: quorum.Acquire, Token: ans.Token, Slots: ans.Slots, From: ans.Stamp}
		said := store.NodeOutcome{Outcome: store.Granted}
		if err := k.checkClock(node, ans, ans.Stamp, at); err != nil {
			k.uncounted.add(node, a.r.Lease, at, at.Add(err.left))
			e.Kind = quorum.Discounted
			said = err.Outcome()
		}
		a.slot = ans.Slot
		a.noteLocked(node, said)
		a.applyLocked(e, at)
	})
	if !waits {
		name = k.releaseUnwanted(node, owner, ans.Token)
	}
	return name
}

// OnFree applies a push of a node: the lock is free, and owner, which barges, may ask
// for it.
func (k *Driver[P]) OnFree(node int, owner string) {
	waits := k.waiters.withOpen(owner, func(a *attempt[P]) {
		now := k.Clock.Now()
		if a.waiting.freeSince == 0 {
			a.waiting.freeSince = now
		}
		a.applyLocked(quorum.Event{Kind: quorum.PushFree, Node: node}, now)
	})
	if !waits {
		k.releaseUnwanted(node, owner, 0)
	}
}

// OnPushLost makes every waiter ask the node again: pushes of it may have been lost.
func (k *Driver[P]) OnPushLost(node int) {
	for _, owner := range k.waiters.owners() {
		askAgain(k, node, owner)
	}
}

// OnHint applies a push of a node that it may have taken back: owner, to which it may have granted
// the lock, asks for it. The push may come more than once, and late: an owner that was granted the
// lock releases it by itself.
func (k *Driver[P]) OnHint(node int, owner string) {
	if !askAgain(k, node, owner) && !k.waiters.wasGranted(owner) {
		k.releaseUnwanted(node, owner, 0)
	}
}

// askAgain makes owner ask the node again, and reports whether owner waits.
func askAgain[P any](k *Driver[P], node int, owner string) (waits bool) {
	return k.waiters.withOpen(owner, func(a *attempt[P]) {
		if a.waiting.reserved { // no caller waits for the answer
			a.waiting.nodes[node].pushLost = true
			return
		}
		a.applyLocked(quorum.Event{Kind: quorum.PushLost, Node: node}, k.Clock.Now())
	})
}

// releaseUnwanted releases what a node has granted to owner, or reserved for it, if that
// owner has left. The node then serves the next waiter in its queue. If the release of the
// lease is on its way to the node, nothing else is needed; see ballot.leftLocked. If owner holds the
// lease, releaseUnwanted returns the name of the lock, and only has the node raise its
// counter, which is at token, as raiseLocked does; 0: it granted nothing.
func (k *Driver[P]) releaseUnwanted(node int, owner string, token uint64) (held string) {
	w := &k.waiters
	w.mu.Lock()
	d := w.departures.byOwner[owner]
	if d == nil {
		w.mu.Unlock()
		return ""
	}
	r, holds, last := d.r, d.held, d.token
	onItsWay := d.releasing.Has(node)
	if onItsWay {
		d.late |= quorum.SetOf(node)
	}
	w.mu.Unlock()
	switch {
	case onItsWay:
	case !holds:
		decline(k, node, r)
	case token > 0 && token < last:
		c := Call[P]{Payload: payloadOf(k, Question{Op: quorum.Confirm, Lease: r, Token: last}), Timeout: k.NodeTimeout(r.TTL), To: ignored{}}
		k.Nodes[node].Put(c)
	}
	if holds {
		held = r.Name
	}
	return held
}
