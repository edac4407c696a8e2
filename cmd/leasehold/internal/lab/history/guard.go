package history

import "fmt"

// guard finds writes that the guard of the resource accepted after one with a larger token, and
// writes that it refused although their holder could trust its lease until it had the answer.
func (h *History) guard() (found []Violation) {
	attempts := map[ID]*Attempt{}
	for _, a := range h.Attempts {
		attempts[a.ID] = a
		_, until, _, ok := a.Trusted()
		if !ok || h.Several && sharesToken(h, a) {
			continue
		}
		for _, g := range a.Guarded {
			if g.Refused && g.Done <= until {
				found = append(found, Violation{Check: "guard", Lock: a.Lock, Attempts: []*Attempt{a},
					What: fmt.Sprintf("the guard refused token %v, whose holder could trust its lease for another %v", a.Token, until.Sub(g.Done))})
				break
			}
		}
	}
	newest := map[place]Write{}
	for _, w := range h.Guarded {
		by := attempts[w.By]
		if by == nil || h.Several && sharesToken(h, by) {
			continue
		}
		at := h.placeOf(w)
		n, any := newest[at]
		if !any || !w.Token.Stale(n.Token) {
			newest[at] = w
			continue
		}
		found = append(found, Violation{Check: "guard", Lock: w.Lock, Attempts: []*Attempt{attempts[n.By], by},
			What: fmt.Sprintf("the guard accepted a write with token %v after one with token %v", w.Token, n.Token)})
	}
	return found
}

// place is what tokens of writes are compared within: a lock, or a slot of a semaphore.
type place struct {
	lock int
	slot int64
}

func (h *History) placeOf(w Write) place {
	at := place{lock: w.Lock}
	if isSemaphore(kindOf(h, w.Lock)) {
		at.slot = w.Slot
	}
	return at
}
