package cli

import (
	"fmt"

	"github.com/leasehold-dev/leasehold/store"
)

// kindText describes a lock that several can hold, and how much of it is held.
func kindText(k store.Kind, held []store.Holding) string {
	if k.Shared {
		return k.String()
	}
	used := int64(0)
	for _, h := range held {
		used += h.Weight
	}
	return fmt.Sprintf("%v, permits in use: %d of %d", k, used, k.Limit)
}

// partOf describes what one holder has of a lock of kind k.
func partOf(k store.Kind, h store.Holding) string {
	switch {
	case k.IsMutex():
		return "mutex"
	case k.Shared:
		return modeOf(k, h)
	case h.Weight > 1:
		return fmt.Sprintf("slot %d, %d of %d permits", h.Slot, h.Weight, k.Limit)
	}
	return fmt.Sprintf("slot %d, 1 of %d permits", h.Slot, k.Limit)
}

// modeOf says whether a holder of a read-write lock reads or writes.
func modeOf(k store.Kind, h store.Holding) string {
	if h.Weight < k.Limit {
		return "reader"
	}
	return "writer"
}
