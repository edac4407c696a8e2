package history

import (
	"fmt"
	"strings"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Since formats t as the time since the start of the run.
func (h *History) Since(t clock.Instant) string {
	return fmt.Sprintf("%.4fs", t.Sub(h.Start).Seconds())
}

// Tell describes a in one line.
func (h *History) Tell(a *Attempt) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v asked %s", a.ID, h.Since(a.Asked))
	if a.From != a.Asked {
		fmt.Fprintf(&b, ", last after %s", h.Since(a.From))
	}
	if a.Answered == 0 {
		b.WriteString(", no answer")
	} else {
		fmt.Fprintf(&b, ", %s %s", a.Outcome, h.Since(a.Answered))
	}
	if a.Outcome == Granted {
		fmt.Fprintf(&b, " with token %v", a.Token)
		if !kindOf(h, a.Lock).IsMutex() {
			fmt.Fprintf(&b, ", weight %d, slot %d", a.Weight, a.Slot)
		}
	}
	if _, to, why, ok := a.Trusted(); ok {
		fmt.Fprintf(&b, ", could trust it until %s (%s)", h.Since(to), why)
	}
	if a.Released != 0 {
		fmt.Fprintf(&b, ", released %s", h.Since(a.Released))
	}
	if a.Killed != 0 {
		fmt.Fprintf(&b, ", killed %s", h.Since(a.Killed))
	}
	if a.Err != "" {
		fmt.Fprintf(&b, ": %s", a.Err)
	}
	return b.String()
}

// Around describes the faults at the time of the violation.
func (h *History) Around(v Violation) []string {
	var all []string
	for _, f := range h.around(v.Attempts) {
		all = append(all, fmt.Sprintf("%s to %s: %s: %s", h.Since(f.At), h.Since(max(f.At, f.End)), f.On, f.What))
	}
	return all
}

// around returns the faults at the time of attempts.
func (h *History) around(attempts []*Attempt) []Fault {
	if len(attempts) == 0 {
		return nil
	}
	from, to := attempts[0].From, attempts[0].From
	for _, a := range attempts {
		_, end, _, _ := a.Trusted()
		from, to = min(from, a.From), max(to, a.From, a.Answered, end)
	}
	var all []Fault
	for _, f := range h.Faults {
		if f.At <= to && max(f.At, f.End) >= from {
			all = append(all, *f)
		}
	}
	return all
}
