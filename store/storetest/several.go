package storetest

import (
	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
)

// several reports whether the store has several nodes. Its semaphores then number the permits,
// and only the tokens of one permit can be compared. Readers need not have the same token.
func (t *stage) several() bool { return t.first.Caps().Nodes > 1 }

// permitToken is a token, with its permit. No two grants have one in common.
type permitToken struct {
	slot  int64 // -1 if the tokens of all permits can be compared
	token fence.Token
}

func (t *stage) permitToken(g store.Grant) permitToken {
	if t.several() {
		return permitToken{g.Slot, g.Token}
	}
	return permitToken{-1, g.Token}
}

// granted remembers the slots of a grant, which its renewals must name.
func (t *actor) granted(g store.Grant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.slots[g.Lease.Owner] = g.Lease.Slots
}
