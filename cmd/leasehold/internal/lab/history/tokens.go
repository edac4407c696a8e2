package history

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
)

// isSemaphore reports whether the holders of a lock have a slot each.
func isSemaphore(k store.Kind) bool { return !k.IsMutex() && !k.Shared }

// bySlot divides attempts of a lock by what their tokens are compared within: the slots
// of a semaphore. Other locks have only one.
func bySlot(h *History, lock int, attempts []*Attempt) iter.Seq2[int64, []*Attempt] {
	slots := map[int64][]*Attempt{}
	for _, a := range attempts {
		slot := a.Slot
		if !isSemaphore(kindOf(h, lock)) {
			slot = 0
		}
		slots[slot] = append(slots[slot], a)
	}
	return func(yield func(int64, []*Attempt) bool) {
		for _, slot := range slices.Sorted(maps.Keys(slots)) {
			if !yield(slot, slots[slot]) {
				return
			}
		}
	}
}

// sharesToken reports whether the token of a may be that of others, as a reader's.
func sharesToken(h *History, a *Attempt) bool {
	return store.Lease{Kind: kindOf(h, a.Lock), Weight: a.Weight}.SharesToken()
}

// tokens finds grants whose token is smaller than that of a grant that was over before
// they were asked for, and tokens that were granted twice: more than one reader may have
// the same, but no writer may have that of a reader. Over several servers, readers are
// compared with writers only.
func (h *History) tokens(lock int) (found []Violation) {
	for _, grants := range bySlot(h, lock, h.granted(lock)) {
		found = append(found, tokensOf(h, grants)...)
	}
	return found
}

// tokensOf is tokens for the grants of one slot.
func tokensOf(h *History, grants []*Attempt) (found []Violation) {
	byFrom, byAnswer := slices.Clone(grants), slices.Clone(grants)
	slices.SortStableFunc(byFrom, func(a, b *Attempt) int { return cmp.Compare(a.From, b.From) })
	slices.SortStableFunc(byAnswer, func(a, b *Attempt) int { return cmp.Compare(a.Answered, b.Answered) })
	wrong := func(what string, attempts ...*Attempt) {
		found = append(found, Violation{Check: "tokens", Lock: attempts[0].Lock, What: what, Attempts: attempts})
	}
	var highest, writer *Attempt // of those answered before, and of the writers among them
	seen := map[fence.Token]*Attempt{}
	for _, a := range byFrom {
		for len(byAnswer) > 0 && byAnswer[0].Answered < a.From {
			if highest == nil || byAnswer[0].Token > highest.Token {
				highest = byAnswer[0]
			}
			if !sharesToken(h, byAnswer[0]) && (writer == nil || byAnswer[0].Token > writer.Token) {
				writer = byAnswer[0]
			}
			byAnswer = byAnswer[1:]
		}
		before := highest
		if h.Several && sharesToken(h, a) {
			before = writer
		}
		twin := seen[a.Token]
		seen[a.Token] = a
		switch {
		case a.Token == 0:
			wrong("a grant without a token", a)
		case twin != nil && !(sharesToken(h, twin) && sharesToken(h, a)):
			wrong("two grants with the same token", twin, a)
		case before != nil && a.Token < before.Token:
			wrong("a later grant has a smaller token", before, a)
		}
	}
	return found
}
