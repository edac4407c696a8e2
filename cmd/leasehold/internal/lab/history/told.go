package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// owners finds attempts that were granted a lock under one owner. Whatever names a lease by its
// owner outside the process, such as a transaction, a guard or an operator, then takes the
// later holder for the earlier one.
func (h *History) owners(lock int) (found []Violation) {
	by := map[string]*Attempt{}
	for _, a := range h.granted(lock) {
		if a.Owner == "" || a.Again {
			continue
		}
		if before := by[a.Owner]; before != nil {
			found = append(found, Violation{Check: "owners", Lock: lock, Attempts: []*Attempt{before, a}, What: "two attempts were granted the lock with the same owner"})
		}
		by[a.Owner] = a
	}
	return found
}

// told finds holders that were not told that they had lost a mutex when another attempt had it,
// and a while after. It judges processes that were neither stopped nor killed meanwhile.
func (h *History) told(lock int, within time.Duration) (found []Violation) {
	if within == 0 || !kindOf(h, lock).IsMutex() {
		return nil
	}
	grants := h.granted(lock)
	slices.SortStableFunc(grants, func(a, b *Attempt) int { return cmp.Compare(a.Token, b.Token) })
	for i, a := range grants[:max(0, len(grants)-1)] {
		next := grants[i+1]
		// A holder that began to release before did not lose it.
		if a.Release != 0 && a.Release <= next.Answered || a.Killed != 0 {
			continue
		}
		late := next.Answered.Add(within)
		// If another process has released the lease, the holder learns of it by its next renewal.
		// If so many servers are in trouble that none is answered, its validity ends first.
		if a.Freed != 0 && (a.Release != 0 && a.Release <= late || h.troubled(a.Freed.Add(-afterFault), late)) {
			continue
		}
		if a.Told != 0 && a.Told <= late || a.Lost != 0 && a.Lost <= late || h.End < late || h.disturbed(a.Proc, a.Answered, late) {
			continue
		}
		what := "the holder was never told that another had the lock"
		if at := cmp.Or(a.Told, a.Lost, a.Release); at != 0 {
			what = fmt.Sprintf("another had the lock for %v before its holder was told of the loss", at.Sub(next.Answered))
		}
		found = append(found, Violation{Check: "told", Lock: lock, Attempts: []*Attempt{a, next}, What: what})
	}
	return found
}

// afterFault is how long a server may stay useless when a fault is over: clients wait before
// they connect again.
const afterFault = 3 * time.Second

// troubled reports whether there was a fault of anything but a process between two instants.
func (h *History) troubled(from, to clock.Instant) bool {
	return slices.ContainsFunc(h.Faults, func(f *Fault) bool {
		return !strings.HasPrefix(f.On, "worker ") && f.At <= to && (f.End == 0 || f.End >= from)
	})
}

// disturbed reports whether a process was stopped or killed between two instants.
func (h *History) disturbed(proc int, from, to clock.Instant) bool {
	return slices.ContainsFunc(h.Faults, func(f *Fault) bool {
		return f.On == Worker(proc) && f.At <= to && (f.End == 0 || f.End >= from)
	})
}
