package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// excess is attempts that could trust their leases at the same time.
type excess struct {
	attempts []*Attempt // the last is the one that was too many
	weight   int64      // of all
	lasted   time.Duration
}

// excesses finds attempts that could trust their leases at the same time although their
// weights add up to more than limit. It takes them in the order in which they began to.
func excesses(holds []*Attempt, limit int64, weight func(*Attempt) int64) (found []excess) {
	var present []*Attempt
	for _, a := range holds {
		from, until, _, _ := a.Trusted()
		present = slices.DeleteFunc(present, func(o *Attempt) bool {
			_, to, _, _ := o.Trusted()
			return to <= from
		})
		present = append(present, a)
		c := excess{attempts: slices.Clone(present)}
		for _, o := range present {
			_, to, _, _ := o.Trusted()
			c.weight, until = c.weight+weight(o), min(until, to)
		}
		if c.lasted = max(until.Sub(from), 0); c.weight > limit {
			found = append(found, c)
		}
	}
	return found
}

// trusted returns the attempts of a lock that could trust their leases for some time,
// in the order in which they began to.
func trusted(h *History, lock int) []*Attempt {
	holds := slices.DeleteFunc(h.granted(lock), func(a *Attempt) bool {
		_, _, _, ok := a.Trusted()
		return !ok
	})
	slices.SortStableFunc(holds, func(a, b *Attempt) int { return cmp.Compare(a.Answered, b.Answered) })
	return holds
}

// exclusion finds attempts that could trust their leases at the same time although the
// lock has no room for them together.
func (h *History) exclusion(lock int) (found []Violation) {
	kind := kindOf(h, lock)
	for _, c := range excesses(trusted(h, lock), kind.Limit, func(a *Attempt) int64 { return a.Weight }) {
		v := Violation{Check: "permits", Lock: lock, Attempts: c.attempts,
			What: fmt.Sprintf("holders of %d permits could trust their leases at once, for %v, and there are %d", c.weight, c.lasted, kind.Limit)}
		switch {
		case kind.IsMutex():
			v.Check, v.What = "mutual exclusion", fmt.Sprintf("%d holders could trust their leases at once, for %v", len(c.attempts), c.lasted)
		case kind.Shared:
			v.Check, v.What = "readers and writers", fmt.Sprintf("a writer and %d others could trust their leases at once, for %v", len(c.attempts)-1, c.lasted)
		}
		found = append(found, v)
	}
	return found
}

// slots finds attempts that could trust their leases at the same time and had the same
// slot, and slots that the lock does not have.
func slots(h *History, lock int) (found []Violation) {
	if !isSemaphore(kindOf(h, lock)) {
		return nil
	}
	limit := kindOf(h, lock).Limit
	for slot, holds := range bySlot(h, lock, trusted(h, lock)) {
		if slot < 0 || slot >= limit {
			found = append(found, Violation{Check: "slots", Lock: lock, Attempts: holds[:1],
				What: fmt.Sprintf("slot %d was granted, and the slots are 0 to %d", slot, limit-1)})
		}
		for _, c := range excesses(holds, 1, func(*Attempt) int64 { return 1 }) {
			found = append(found, Violation{Check: "slots", Lock: lock, Attempts: c.attempts,
				What: fmt.Sprintf("%d holders of slot %d could trust their leases at once, for %v", len(c.attempts), slot, c.lasted)})
		}
	}
	return found
}
