package history

import (
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Violation is something that a correct lock would not have done.
type Violation struct {
	// Check is which promise: "mutual exclusion", "permits", "readers and writers",
	// "slots", "tokens", "steps", "owners", "told", "writes", "guard", "lock model", "token model", "liveness", "idle".
	Check string
	Lock  int
	What  string
	// Attempts are the attempts that show the violation.
	Attempts []*Attempt

	refused []*Attempt // all that led to it, where a model refused them
}

// HasPicture reports whether Picture can show v.
func (v Violation) HasPicture() bool { return v.refused != nil }

// writes finds those that reached the resource after a write of a later holder,
// although they were over while their own holder could trust its lease. It
// needs no comparison of clock readings of different processes. late counts
// the others that came after a later holder's: of holders that were stopped
// between looking and writing, which a resource that checks tokens refuses.
func (h *History) writes() (found []Violation, late int) {
	type key struct {
		ID
		write int
	}
	looks := map[key]Look{}
	attempts := map[ID]*Attempt{}
	for _, a := range h.Attempts {
		attempts[a.ID] = a
		for _, l := range a.Looks {
			looks[key{a.ID, l.Write}] = l
		}
	}
	newest := map[place]Write{}
	for _, w := range h.Writes {
		at := h.placeOf(w)
		by := attempts[w.By]
		if h.Several && by != nil && sharesToken(h, by) {
			continue
		}
		n, any := newest[at]
		if !any || !w.Token.Stale(n.Token) {
			newest[at] = w
			continue
		}
		l, known := looks[key{w.By, w.Number}]
		if !known || l.Done > l.Until || by != nil && by.Freed != 0 && l.Done > by.Freed {
			late++
			continue
		}
		v := Violation{Check: "writes", Lock: w.Lock, Attempts: []*Attempt{attempts[w.By]},
			What: fmt.Sprintf("write %d of %v with token %v was made in time, and came after one of %v with token %v", w.Number, w.By, w.Token, n.By, n.Token)}
		if a := attempts[n.By]; a != nil {
			v.Attempts = append(v.Attempts, a)
		}
		found = append(found, v)
	}
	return found, late
}

// liveness finds locks that were not granted again in time after the faults
// ended.
func (h *History) liveness(bound time.Duration) []Violation {
	if h.Calm == 0 {
		return nil
	}
	again := h.Again()
	var found []Violation
	for lock := range h.Locks {
		if at, ok := again[lock]; !ok || at.Sub(h.Calm) > bound {
			found = append(found, Violation{Check: "liveness", Lock: lock,
				What: fmt.Sprintf("nobody was granted it within %v after the last fault", bound)})
		}
	}
	return found
}

// Again returns, for each lock that was granted after the faults ended, when that
// was.
func (h *History) Again() map[int]clock.Instant {
	h.mu.Lock()
	defer h.mu.Unlock()
	again := map[int]clock.Instant{}
	for _, a := range h.Attempts {
		if a.Outcome == Granted && h.Calm != 0 && a.Answered > h.Calm {
			if at, ok := again[a.Lock]; !ok || a.Answered < at {
				again[a.Lock] = a.Answered
			}
		}
	}
	return again
}
