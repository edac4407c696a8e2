package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Idleness has the parameters for judging idle time.
type Idleness struct {
	// Bound is how long somebody may wait for a lock that is available. Zero: it is
	// only measured.
	Bound time.Duration
	// TTL is how long a lease may outlast a holder that is gone.
	TTL time.Duration
	// Nodes is how many servers decide, by their majority. Zero: one does.
	Nodes int
	// Grace is how long a server, or a process that was stopped, may need at most after
	// a fault until it is as it was.
	Grace time.Duration
}

// idleTime judges the idle time of a history.
type idleTime struct {
	*History
	Idleness
}

// span is a time in which something was so.
type span struct{ from, to clock.Instant }

func (s span) length() time.Duration { return s.to.Sub(s.from) }

// idle finds the longest time in which somebody waited for a lock that was available:
// nobody held it, no lease of a dead client was left, and a majority of servers was
// reachable.
func (h idleTime) idle(lock int) (longest time.Duration, waiter *Attempt) {
	taken := merge(append(h.full(lock), h.unreachable()...))
	for _, a := range h.Attempts {
		if a.Lock != lock || !a.Waits || a.Answered == 0 {
			continue
		}
		own := merge(append(slices.Clone(taken), h.stopped(a.Proc)...))
		for _, free := range without(span{a.Asked, a.Answered}, own) {
			if d := free.length(); d > longest {
				longest, waiter = d, a
			}
		}
	}
	return longest, waiter
}

// full is when a lock had no room for the one that wanted most of it: the queue may have
// made all others wait for that one.
func (h idleTime) full(lock int) (all []span) {
	type edge struct {
		at    clock.Instant
		taken int64 // so much more of the lock
		wants int64 // somebody begins to wait for so much, or ends if less than 0
	}
	var edges []edge
	for _, a := range h.Attempts {
		if a.Lock != lock {
			continue
		}
		for _, s := range merge(h.takenBy(a)) {
			edges = append(edges, edge{at: s.from, taken: a.Weight}, edge{at: s.to, taken: -a.Weight})
		}
		if until := cmp.Or(a.Answered, a.Killed, h.End); a.Waits {
			edges = append(edges, edge{at: a.Asked, wants: a.Weight}, edge{at: until, wants: -a.Weight})
		}
	}
	slices.SortStableFunc(edges, func(a, b edge) int { return cmp.Compare(a.at, b.at) })
	limit, taken, waiting := kindOf(h.History, lock).Limit, int64(0), map[int64]int{}
	for i, e := range edges {
		switch taken += e.taken; {
		case e.wants > 0:
			waiting[e.wants]++
		case e.wants < 0:
			if waiting[-e.wants]--; waiting[-e.wants] == 0 {
				delete(waiting, -e.wants)
			}
		}
		most := int64(1)
		for weight := range waiting {
			most = max(most, weight)
		}
		if taken+most > limit && i+1 < len(edges) {
			all = append(all, span{e.at, edges[i+1].at})
		}
	}
	return all
}

// takenBy returns when a kept others from the lock: while a had it, and while a request of a could
// still take it.
func (h idleTime) takenBy(a *Attempt) (all []span) {
	switch {
	case a.Killed != 0: // also while it only waited: it may have been handed the lock
		all = append(all, span{a.Asked, a.Killed.Add(h.TTL + h.Grace)})
	case a.Outcome == Granted && a.Released != 0:
		all = append(all, span{a.Answered, a.Released})
	case a.Outcome == Granted && a.Release != 0: // it failed
		all = append(all, span{a.Answered, a.Release.Add(h.TTL + h.Grace)})
	case a.Outcome == Granted:
		all = append(all, span{a.Answered, h.End})
	}
	if a.Answered == 0 && a.Killed == 0 { // nobody knows what became of it
		return append(all, span{a.Asked, h.End})
	}
	// While its process is stopped it may be handed the lock, and cannot answer.
	for _, s := range h.stopped(a.Proc) {
		if a.Asked < s.to && s.from < max(a.Answered, a.Released) {
			all = append(all, s)
		}
	}
	return all
}

// stopped is when a process did not run.
func (h idleTime) stopped(proc int) (all []span) {
	for _, f := range h.Faults {
		if f.On == Worker(proc) {
			all = append(all, h.lasts(f))
		}
	}
	return all
}

func (h idleTime) lasts(f *Fault) span {
	if f.End == 0 {
		return span{f.At, h.End}
	}
	// Clients try again after pauses that double: none is longer than the fault was.
	return span{f.At, f.End.Add(min(h.Grace, f.End.Sub(f.At)+100*time.Millisecond))}
}

// unreachable is when so many servers had a fault that the others were no majority.
func (h idleTime) unreachable() (all []span) {
	type edge struct {
		at clock.Instant
		on string
		up int
	}
	var edges []edge
	for _, f := range h.Faults {
		if strings.HasPrefix(f.On, "node ") {
			s := h.lasts(f)
			edges = append(edges, edge{s.from, f.On, 1}, edge{s.to, f.On, -1})
		}
	}
	slices.SortStableFunc(edges, func(a, b edge) int { return cmp.Compare(a.at, b.at) })
	faults, most := map[string]int{}, (max(h.Nodes, 1)-1)/2
	for i, e := range edges {
		if faults[e.on] += e.up; faults[e.on] == 0 {
			delete(faults, e.on)
		}
		if len(faults) > most && i+1 < len(edges) {
			all = append(all, span{e.at, edges[i+1].at})
		}
	}
	return all
}

// merge sorts spans and joins those that overlap.
func merge(all []span) (merged []span) {
	slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	for _, s := range all {
		if n := len(merged); n > 0 && s.from <= merged[n-1].to {
			merged[n-1].to = max(merged[n-1].to, s.to)
			continue
		}
		merged = append(merged, s)
	}
	return merged
}

// without is what is left of s; taken is sorted and does not overlap.
func without(s span, taken []span) (left []span) {
	for _, t := range taken {
		if t.to <= s.from || t.from >= s.to {
			continue
		}
		if t.from > s.from {
			left = append(left, span{s.from, t.from})
		}
		s.from = min(t.to, s.to)
	}
	if s.from < s.to {
		left = append(left, s)
	}
	return left
}

// violations finds locks that somebody waited for too long although they were available.
func (h idleTime) violations() (found []Violation, longest time.Duration) {
	for lock := range h.Locks {
		d, a := h.idle(lock)
		longest = max(longest, d)
		if h.Bound > 0 && d > h.Bound {
			found = append(found, Violation{Check: "idle", Lock: lock, Attempts: []*Attempt{a},
				What: fmt.Sprintf("a client waited for %v although the lock had room and a majority of servers was reachable; the bound is %v", d, h.Bound)})
		}
	}
	return found, longest
}
