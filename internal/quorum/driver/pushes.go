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
		e := quorum.Event{Kind: quorum.PushGranted, Node: node, Op: quorum.Acquire, Token: ans.Token, Reserved: a.reservedLocked(ans), Slots: ans.Slots, From: ans.Stamp}
		said := store.NodeOutcome{Outcome: store.Granted}
		if err := k.checkClock(node, ans, ans.Stamp, at); err != nil {
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
		k.waiters.withOpen(owner, func(a *attempt[P]) {
			if a.waiting.reserved { // no caller waits for the answer
				a.waiting.nodes[node].pushLost = true
				return
			}
			a.applyLocked(quorum.Event{Kind: quorum.PushLost, Node: node}, k.Clock.Now())
		})
	}
}
