package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Violation is something that a correct lock would not have done.
type Violation struct {
	// Check is which promise: "mutual exclusion", "tokens", "writes", "lock
	// model", "token model", "liveness", "idle".
	Check string
	Lock  int
	What  string
	// Attempts are the attempts that show the violation.
	Attempts []*Attempt

	refused []*Attempt // all that led to it, where a model refused them
}

// HasPicture says whether Picture can show v.
func (v Violation) HasPicture() bool { return v.refused != nil }

// exclusion finds attempts that could trust their leases at the same time.
func (h *History) exclusion(lock int) []Violation {
	var holds []*Attempt
	for _, a := range h.granted(lock) {
		if _, _, _, ok := a.Trusted(); ok {
			holds = append(holds, a)
		}
	}
	slices.SortStableFunc(holds, func(a, b *Attempt) int { return cmp.Compare(a.Answered, b.Answered) })
	var found []Violation
	var last *Attempt // of those so far, the one that could trust its lease longest
	var until clock.Instant
	for _, a := range holds {
		from, to, _, _ := a.Trusted()
		if last != nil && from < until {
			found = append(found, Violation{
				Check: "mutual exclusion", Lock: lock, Attempts: []*Attempt{last, a},
				What: fmt.Sprintf("two holders could trust their leases at once, for %v", max(min(to, until).Sub(from), 0)),
			})
		}
		if last == nil || to > until {
			last, until = a, to
		}
	}
	return found
}

// tokens finds grants whose token is not larger than that of every grant that was
// over before they were asked for, and tokens that were granted twice.
func (h *History) tokens(lock int) []Violation {
	grants := h.granted(lock)
	byFrom, byAnswer := slices.Clone(grants), slices.Clone(grants)
	slices.SortStableFunc(byFrom, func(a, b *Attempt) int { return cmp.Compare(a.From, b.From) })
	slices.SortStableFunc(byAnswer, func(a, b *Attempt) int { return cmp.Compare(a.Answered, b.Answered) })
	var found []Violation
	wrong := func(what string, attempts ...*Attempt) {
		found = append(found, Violation{Check: "tokens", Lock: lock, What: what, Attempts: attempts})
	}
	var highest *Attempt // of those answered before
	seen := map[fence.Token]*Attempt{}
	for _, a := range byFrom {
		for len(byAnswer) > 0 && byAnswer[0].Answered < a.From {
			if highest == nil || byAnswer[0].Token > highest.Token {
				highest = byAnswer[0]
			}
			byAnswer = byAnswer[1:]
		}
		twin := seen[a.Token]
		seen[a.Token] = a
		switch {
		case a.Token == 0:
			wrong("a grant without a token", a)
		case twin != nil:
			wrong("two grants with the same token", twin, a)
		case highest != nil && a.Token < highest.Token:
			wrong("a later grant has a smaller token", highest, a)
		}
	}
	return found
}

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
	newest := map[int]Write{} // by lock
	for _, w := range h.Writes {
		n, any := newest[w.Lock]
		if !any || !w.Token.Stale(n.Token) {
			newest[w.Lock] = w
			continue
		}
		l, known := looks[key{w.By, w.Number}]
		if !known || l.Done > l.Until {
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
