package cli

import (
	"fmt"

	"github.com/leasehold-dev/leasehold/internal/statejson"
	"github.com/leasehold-dev/leasehold/store"
)

// kindText describes a lock that several hold, or can hold, and how much of it is held.
func kindText(k store.Kind, held []store.Holding) string {
	if k.Shared {
		return k.String()
	}
	used := int64(0)
	for _, h := range held {
		used += h.Weight
	}
	return fmt.Sprintf("%v, permits in use: %d of %d", k, used, k.Normal().Limit)
}

// partOf describes what h, one of the holders of a lock of kind k, has of it.
func partOf(k store.Kind, held []store.Holding, h store.Holding) string {
	switch {
	case statejson.IsOne(k, held):
		return "mutex"
	case k.Shared:
		return statejson.ModeOf(k, h)
	case k.IsMutex():
		return fmt.Sprintf("slot %d, %d of 1 permit", h.Slot, h.Weight)
	case h.Weight > 1:
		return fmt.Sprintf("slot %d, %d of %d permits", h.Slot, h.Weight, k.Limit)
	}
	return fmt.Sprintf("slot %d, 1 of %d permits", h.Slot, k.Limit)
}

// partOfUndecided describes what h, one of State.Undecided, has of its lock.
func partOfUndecided(h store.Holding) string {
	return partOf(h.Kind, []store.Holding{h}, h)
}
