package rule

import (
	"errors"
	"fmt"
	"math"
)

// Check returns an error if r, which was read from outside, is not valid. No
// sequence of steps leads to such a record, and a step from one could admit a
// second owner.
func (r Record) Check() error {
	if r.Token > math.MaxInt64 { // the many tokens below this cannot be used up
		return errors.New("no token is left after the last")
	}
	room := max(r.Spec.Limit, r.Was)
	for _, h := range r.Holds {
		switch {
		case h.Owner == "":
			return errors.New("a lease has no owner")
		case h.Weight < 1 || h.Weight > room:
			return fmt.Errorf("the leases do not fit into the limit of %d", r.Spec.Limit)
		case h.Count < 1:
			return fmt.Errorf("the lease of %q is entered %d times", h.Owner, h.Count)
		case h.Token < 1 || h.Token > r.Token:
			return fmt.Errorf("the lease of %q has token %v, the last one is %v", h.Owner, h.Token, r.Token)
		}
		if _, ok := h.Slots.Numbers(); !ok {
			return fmt.Errorf("the lease of %q has the slots %q", h.Owner, h.Slots)
		}
		room -= h.Weight
	}
	for _, p := range r.Queue {
		if p.Owner == "" || p.Weight < 1 || p.Weight > r.Spec.Limit {
			return fmt.Errorf("a place of weight %d is of owner %q", p.Weight, p.Owner)
		}
	}
	for _, t := range r.Tombstones {
		if t.Owner == "" {
			return errors.New("a tombstone has no owner")
		}
	}
	return nil
}
