package history

import (
	"fmt"
	"time"
)

// Limits bound a check.
type Limits struct {
	// Calm is how long it may take after the last fault until every lock is
	// granted again.
	Calm time.Duration
	// Told is how much later than the next holder's grant the holder before may be told
	// that it has lost the lock: what a busy machine needs to run it. Zero: that is not
	// judged.
	Told time.Duration
	// Patience is how long porcupine may take for one part of the history of one
	// lock.
	Patience time.Duration
	// Idle is what idle time is judged by.
	Idle Idleness
}

// Findings are the results of Check.
type Findings struct {
	Violations []Violation
	// Undecided describes checks that did not finish in time.
	Undecided []string
	// LateWrites counts writes that reached the resource after those of a later
	// holder, by holders that had been stopped between checking their lease and
	// writing. No lock can prevent them; a resource that checks tokens refuses
	// them.
	LateWrites int
	// Counts of attempts, by what became of them.
	Granted, Failed, Unknown, Lost, Killed int
	// Recovered is how long after the last fault the last lock was granted again.
	// It is zero if one was not granted, or if there was no calm period.
	Recovered time.Duration
	// Idle is the longest time for which somebody waited for a lock that was available.
	Idle time.Duration
}

// Check looks for violations in the whole of h. Nothing may be added to h
// meanwhile.
func (h *History) Check(l Limits) Findings {
	var f Findings
	for _, a := range h.Attempts {
		a.Freed = h.freed[a.Owner]
		switch a.Outcome {
		case Granted:
			f.Granted++
		case Failed:
			f.Failed++
		default:
			f.Unknown++
		}
		if a.Lost != 0 {
			f.Lost++
		}
		if a.Killed != 0 {
			f.Killed++
		}
	}
	for lock := range h.Locks {
		f.Violations = append(f.Violations, h.exclusion(lock)...)
		f.Violations = append(f.Violations, slots(h, lock)...)
		f.Violations = append(f.Violations, h.tokens(lock)...)
		f.Violations = append(f.Violations, h.steps(lock, l.Idle.TTL)...)
		f.Violations = append(f.Violations, h.owners(lock)...)
		f.Violations = append(f.Violations, h.told(lock, l.Told)...)
	}
	found, late := h.writes()
	f.Violations, f.LateWrites = append(append(f.Violations, found...), h.guard()...), late
	for _, m := range h.models() {
		for lock, name := range h.Locks {
			if !kindOf(h, lock).IsMutex() {
				continue // its checks above find whatever has no order, in less time than a model
			}
			refused, decided := h.refused(m, lock, l.Patience)
			if !decided {
				f.Undecided = append(f.Undecided, fmt.Sprintf("the %s was still looking for an order of the operations on lock %q after %v", m.name, name, l.Patience))
			}
			if refused != nil {
				f.Violations = append(f.Violations, Violation{
					Check: m.name, Lock: lock, refused: refused, Attempts: refused[max(0, len(refused)-3):],
					What: "there is no order of the operations that explains the answers; it cannot be continued with the last of these",
				})
			}
		}
	}
	f.Violations = append(f.Violations, h.liveness(l.Calm)...)
	found, f.Idle = idleTime{h, l.Idle}.violations()
	f.Violations = append(f.Violations, found...)
	if again := h.Again(); len(again) == len(h.Locks) {
		for _, at := range again {
			f.Recovered = max(f.Recovered, at.Sub(h.Calm))
		}
	}
	return f
}
