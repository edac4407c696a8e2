package storetest

import (
	"cmp"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
)

// several reports whether the store has several nodes. Their semaphores number each permit, and
// tokens compare among the holders of one. Readers need not have the same token.
func (t *stage) several() bool { return t.first.Caps().Nodes > 1 }

// permitToken is what no two grants have in common.
type permitToken struct {
	slot  int64 // -1 if tokens compare among all holders
	token fence.Token
}

func (t *stage) permitToken(g store.Grant, token fence.Token) permitToken {
	if t.several() {
		return permitToken{g.Slot, token}
	}
	return permitToken{-1, token}
}

// granted remembers what renewals of a grant have to say.
func (t *actor) granted(owner string, g store.Grant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.slots[cmp.Or(g.Owner, owner)] = g.Slots
}
