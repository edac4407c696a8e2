package cli

import (
	"fmt"

	"github.com/leasehold-dev/leasehold/store"
)

// isOne reports whether a lock of kind k has the one holder of a mutex. A semaphore that
// was resized to one permit is a mutex, and can have more.
func isOne(k store.Kind, held []store.Holding) bool { return k.IsMutex() && len(held) == 1 }

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
	case isOne(k, held):
		return "mutex"
	case k.Shared:
		return modeOf(k, h)
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

// modeOf reports whether a holder of a read-write lock reads or writes.
func modeOf(k store.Kind, h store.Holding) string {
	if h.Weight < k.Limit {
		return "reader"
	}
	return "writer"
}
