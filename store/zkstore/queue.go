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

// owns returns what the place q[me] has. Its owner has not been notified of a grant yet.
func (q queue) owns(me int) rule.Answer {
	return rule.Owns(q[:me+1].ranked(), me) // those behind it change nothing
}

// blocker returns the place that a refusal of q[me] names: the first holder or, if there is
// room for q[me], the waiter at the head of the queue.
func (q queue) blocker(me int) (c numbered, waiting bool) {
	if is := q.owns(me); is.Verdict == rule.Busy && is.Blocker.Waiting {
		return q[q.holders()], true
	}
	return q[0], false
}

// holders returns how many places hold the lock.
func (q queue) holders() int { return rule.Holders(q.ranked()) }

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

// anyPlace is what a waiter watches whose turn may come with the end of any place.
const anyPlace = ""

// hurdleOf returns the place that q[me], which waits, watches: it changes no later than its turn comes. As few waiters as possible
// watch one place, so that its end does not wake many for nothing:
//
//   - a reader watches the last place before its own that is not a reader's;
//   - the head of the queue for a semaphore watches all places, since any holder's end may
//     make room for it, if there are several holders and they need not all leave;
//   - all others watch the place before their own, and in a semaphore are told as well
//     when that place gets its slot.
func (q queue) hurdleOf(me int) (name string) {
	p := q[me]
	if p.spec == rule.ReadWrite && p.needsOthers() {
		for i := me - 1; i >= 0; i-- {
			if q[i].spec != p.spec || !q[i].needsOthers() {
				return q[i].name
			}
		}
	}
	if holders := q.holders(); me == holders && holders > 1 && p.needsOthers() {
		return anyPlace
	}
	return q[me-1].name
}
