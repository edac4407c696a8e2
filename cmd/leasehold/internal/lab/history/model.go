package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
)

// step is one operation on the model of a lock.
type step struct {
	a  *Attempt
	do int
}

const (
	take    = iota // it was granted
	mayTake        // it may have been
	endHold        // the hold ended, at some time
)

// nobody has the lock.
var nobody *Attempt

// lockModel is a plain lock that can only be taken when it is free. An attempt of
// unknown outcome may or may not have taken and released it: both are followed.
var lockModel = porcupine.NondeterministicModel{
	Init: func() []any { return []any{nobody} },
	Step: func(state, input, _ any) []any {
		holder, s := state.(*Attempt), input.(step)
		switch {
		case s.do == take && holder == nobody:
			return []any{s.a}
		case s.do == mayTake && holder == nobody:
			return []any{nobody, s.a}
		case s.do == mayTake:
			return []any{holder}
		case s.do == endHold && holder == s.a:
			return []any{nobody}
		}
		return nil
	},
	DescribeOperation: func(input, _ any) string {
		switch s := input.(step); s.do {
		case take:
			return fmt.Sprintf("%v takes it, token %v", s.a.ID, s.a.Token)
		case mayTake:
			return fmt.Sprintf("%v takes it, or not", s.a.ID)
		default:
			return fmt.Sprintf("hold of %v ends", s.a.ID)
		}
	},
	DescribeState: func(state any) string {
		if holder := state.(*Attempt); holder != nobody {
			return holder.ID.String()
		}
		return "free"
	},
}

// tokenModel is a counter that every grant increases, by any amount. Attempts of
// unknown outcome may have increased it, which makes no difference.
var tokenModel = porcupine.Model{
	Init: func() any { return fence.Token(0) },
	Step: func(state, _, output any) (bool, any) {
		return output.(fence.Token) > state.(fence.Token), output
	},
	DescribeOperation: func(input, output any) string {
		return fmt.Sprintf("%v draws %v", input.(*Attempt).ID, output)
	},
	DescribeState: func(state any) string { return state.(fence.Token).String() },
}

// lockOperations returns the steps of attempts of one lock. A step without a
// known end may end after everything else.
func (h *History) lockOperations(attempts []*Attempt) []porcupine.Operation {
	never := h.End.Add(time.Second)
	lane := h.lanes()
	var ops []porcupine.Operation
	add := func(a *Attempt, do int, from, to clock.Instant) {
		to = max(from, cmp.Or(to, never))
		ops = append(ops, porcupine.Operation{ClientId: lane(a.ID), Input: step{a, do}, Call: int64(from), Return: int64(to)})
	}
	for _, a := range attempts {
		switch a.Outcome {
		case Granted:
			add(a, take, a.From, a.Answered)
			// The hold can end before the answer: the process may have been stopped, and
			// have learned of the grant only when its validity was over.
			_, ended, _, _ := a.Trusted()
			add(a, endHold, max(a.From, ended), a.Released)
		case Unknown:
			// Its effect may come at any time from now on, or never. When is
			// not left to the search: that it had none, right away, explains
			// whatever its having one later would, and a choice that changes
			// nothing would double the work with every such attempt.
			add(a, mayTake, a.Asked, a.Asked)
		}
	}
	return ops
}

// tokenOperations returns the grants among attempts of one lock.
func (h *History) tokenOperations(attempts []*Attempt) []porcupine.Operation {
	lane := h.lanes()
	var ops []porcupine.Operation
	for _, a := range attempts {
		if a.Outcome == Granted {
			ops = append(ops, porcupine.Operation{ClientId: lane(a.ID), Input: a, Output: a.Token, Call: int64(a.From), Return: int64(a.Answered)})
		}
	}
	return ops
}

// lanes returns a function that numbers the goroutines of all processes from 0.
func (h *History) lanes() func(ID) int {
	each := 1
	for _, a := range h.Attempts {
		each = max(each, a.G+1)
	}
	return func(id ID) int { return (id.Proc-1)*each + id.G }
}

// model is one of the two, and what it is asked.
type model struct {
	name string
	porcupine.Model
	operations func([]*Attempt) []porcupine.Operation
}

func (h *History) models() []model {
	return []model{
		{"lock model", lockModel.ToModel(), h.lockOperations},
		{"token model", tokenModel, h.tokenOperations},
	}
}

// chunk is how many attempts are looked at at once, and overlap how many of
// them belong to the next chunk as well. A history keeps its explanation when
// attempts are left out of it, so no chunk is refused that belongs to a good
// one. Violations between attempts further apart than the overlap are left to
// the other checks, which know no chunks.
const chunk, overlap = 4000, 400

// refused looks for attempts of one lock that the model cannot explain. It
// returns as few of them as begin with the first; nil when there are none, and
// decided is false when patience did not suffice to tell.
func (h *History) refused(m model, lock int, patience time.Duration) (attempts []*Attempt, decided bool) {
	all := h.ordered(lock)
	decided = true
	for len(all) > 0 {
		part := all[:min(chunk, len(all))]
		switch porcupine.CheckOperationsTimeout(m.Model, m.operations(part), patience) {
		case porcupine.Illegal:
			return h.shortest(m, part, patience), true
		case porcupine.Unknown:
			decided = false
		}
		if len(part) == len(all) {
			break
		}
		all = all[chunk-overlap:]
	}
	return nil, decided
}

// shortest returns the shortest prefix of attempts that the model refuses.
func (h *History) shortest(m model, attempts []*Attempt, patience time.Duration) []*Attempt {
	least, most := 1, len(attempts)
	for least < most {
		n := (least + most) / 2
		if porcupine.CheckOperationsTimeout(m.Model, m.operations(attempts[:n]), patience) == porcupine.Illegal {
			most = n
		} else {
			least = n + 1
		}
	}
	return attempts[:most]
}

// ordered returns the attempts of one lock that matter to a model, ordered by
// their ends.
func (h *History) ordered(lock int) []*Attempt {
	var all []*Attempt
	for _, a := range h.Attempts {
		if a.Lock == lock && a.Outcome != Failed {
			all = append(all, a)
		}
	}
	over := func(a *Attempt) clock.Instant { return cmp.Or(a.Answered, a.Killed, h.End) }
	slices.SortStableFunc(all, func(a, b *Attempt) int { return cmp.Compare(over(a), over(b)) })
	return all
}
