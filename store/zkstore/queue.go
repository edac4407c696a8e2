package zkstore

import (
	"slices"

	"github.com/leasehold-dev/leasehold/internal/rule"
)

// ranked returns the queue as internal/rule reads it.
func (q queue) ranked() []rule.Ranked {
	ranked := make([]rule.Ranked, len(q))
	for i, c := range q {
		ranked[i] = rule.Ranked{Owner: c.name, Spec: c.spec, Weight: c.weight}
	}
	return ranked
}

// owns returns what the place q[me] has. Its owner has not been notified of a grant yet. If it asked for
// another number of permits than there are now, that is a mismatch.
func (q queue) owns(me int) rule.Answer {
	ans := rule.Owns(q[:me+1].ranked(), me) // those behind it change nothing
	if q[me].resized {
		ans.Verdict = rule.Mismatch
	}
	return ans
}

// blocker returns the place that a refusal of q[me] names: the first holder or, if there is
// room for q[me], the waiter at the head of the queue.
func (q queue) blocker(me int) (c numbered, waiting bool) {
	if is := q.owns(me); is.Verdict == rule.Busy && is.Blocker.Waiting {
		return q[q.holders()], true
	}
	return q[0], false
}

// held reports whether the place q[i] with that record holds the lock, also if there are
// too few permits since.
func (q queue) held(i int, r record) bool { return i < q.holders() || i == 0 || r.Agreed }

// holders returns how many places hold the lock.
func (q queue) holders() int { return rule.Holders(q.ranked()) }

// mayHold returns how many places hold the lock at most: also those that asked for an
// earlier number of permits may.
func (q queue) mayHold() int {
	n := max(1, q.holders())
	for i, c := range q {
		if c.resized {
			n = max(n, i+1)
		}
	}
	return n
}

// holds reports whether the owner holds the lock with a place before q[me].
func (q queue) holds(me int, owner string) bool {
	mark := ownerMark(owner)
	return slices.ContainsFunc(q[:min(me, q.holders())], func(c numbered) bool { return c.isOf(mark) })
}

// nativeBefore returns the last place before q[i] that may be a Store's, or -1. Readers of
// other clients have no tokens, and are passed over.
func (q queue) nativeBefore(i int) int {
	for i--; i >= 0 && !q[i].isNative(); i-- {
	}
	return i
}

// hurdle is what a waiter watches: a change that comes no later than its turn.
type hurdle struct {
	// name is the place whose end or other change the waiter waits for.
	name string
}

// anyPlace is the hurdle of a waiter whose turn may come with the end of any place.
var anyPlace hurdle

// hurdleOf returns what the place q[me], which waits, watches. As few waiters as possible
// watch one place, so that its end does not wake many for nothing:
//
//   - a reader watches the last place before its own that is not a reader's;
//   - the head of the queue for a semaphore watches all places, since any holder's end may
//     make room for it, if there are several holders and they need not all leave;
//   - all others watch the place before their own, and in a semaphore are told as well
//     when that place gets its slot.
//
// If there are fewer permits than holders, all waiters for a semaphore watch all places.
func (q queue) hurdleOf(me int) hurdle {
	p := q[me]
	if p.spec == rule.ReadWrite && p.needsOthers() {
		for i := me - 1; i >= 0; i-- {
			if q[i].spec != p.spec || !q[i].needsOthers() {
				return hurdle{q[i].name}
			}
		}
	}
	resized := slices.ContainsFunc(q[:me], func(c numbered) bool { return c.resized })
	if holders := q.holders(); resized || me == holders && holders > 1 && p.needsOthers() {
		return anyPlace
	}
	return hurdle{q[me-1].name}
}

// The size of a semaphore is in the names of its places, which cannot change. Resize
// writes into their parent node that the places up to a number count as those of a
// semaphore of another size. A client that finds a semaphore's place reads that as well.
// A list of the places shows whether the parent node has data.

// resize says that the places up to the number Until that were of a semaphore of From
// permits are of one of To permits.
type resize struct {
	From  int64 `json:"from"`
	To    int64 `json:"to"`
	Until int32 `json:"until"`
}

// dirRecord is the data of the node that has the places.
type dirRecord struct {
	Resized []resize `json:"resized,omitempty"`
	// Broken is set once a lease of the lock was broken. The notes say which one.
	Broken bool `json:"broken,omitempty"`
}

func (r dirRecord) encode() []byte { return encodeJSON(r) }

// applyTo returns the queue with the kinds that its places have now.
func (r dirRecord) applyTo(q queue) queue {
	q = slices.Clone(q)
	for i := range q {
		for _, z := range r.Resized {
			if q[i].seq-z.Until <= 0 && q[i].spec == rule.Semaphore(z.From) {
				q[i].spec, q[i].resized = rule.Semaphore(z.To), true
			}
		}
	}
	return q
}

// add returns the record after a further resize of the semaphore whose places are q. It
// forgets those of which no place is left.
func (r dirRecord) add(from, to rule.Spec, q queue) dirRecord {
	next := dirRecord{Broken: r.Broken}
	for _, z := range r.Resized {
		if q[0].seq-z.Until <= 0 {
			next.Resized = append(next.Resized, z)
		}
	}
	next.Resized = append(next.Resized, resize{from.Limit, to.Limit, q[len(q)-1].seq})
	return next
}

// hasSized reports whether the queue has a place of a semaphore.
func (q queue) hasSized() bool {
	return slices.ContainsFunc(q, func(c numbered) bool { return hasSeats(c.spec) })
}
