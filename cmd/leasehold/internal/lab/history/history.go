package history

import (
	"fmt"
	"sync"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// Fault is one fault that was injected, in the environment or in a process.
type Fault struct {
	At, End clock.Instant // End is zero while it lasts, or for what has no duration
	On      string        // "worker 2", "node 127.0.0.1:7001"
	What    string
}

// History is everything that is known about one run. Its methods are safe for
// concurrent use. Its fields may be read only when nothing is added any more.
type History struct {
	Locks []string
	Kinds []store.Kind // of the locks; those beyond its end are mutexes
	// Several: the locks are on several servers. Readers that hold a lock together may then
	// have different tokens, and a resource checks only those of writers.
	Several  bool
	Attempts []*Attempt // in the order in which they became known
	Writes   []Write    // in the order in which the resource took them
	Guarded  []Write    // in the order in which the guard of another resource accepted them
	Faults   []*Fault
	Start    clock.Instant
	Calm     clock.Instant // no faults from here on; zero: not so far
	End      clock.Instant

	mu    sync.Mutex
	open  map[ID]*Attempt
	freed map[string]clock.Instant // by owner
}

// New returns an empty history of the named locks, which starts now.
func New(locks []string) *History {
	now := Now()
	return &History{Locks: locks, Start: now, End: now, open: map[ID]*Attempt{}, freed: map[string]clock.Instant{}}
}

// Add adds an event of a process. The events of a process must be added in order.
func (h *History) Add(proc, life int, e Event) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.End = max(h.End, e.At, e.Done)
	id := ID{Proc: proc, Life: life, G: e.G, N: e.N}
	switch e.Op {
	case Up, Down, Trouble, Extended:
		return nil
	case Freed:
		if at, ok := h.freed[e.Owner]; !ok || e.At < at {
			h.freed[e.Owner] = e.At
		}
		return nil
	case Ask:
		a := &Attempt{ID: id, Lock: e.Lock, Waits: e.Waits, Again: e.Again, Weight: max(e.Weight, 1), Asked: e.At, From: e.At, Outcome: Unknown}
		if e.Lock < 0 || e.Lock >= len(h.Locks) {
			return fmt.Errorf("attempt %v is of lock %d of %d", id, e.Lock, len(h.Locks))
		}
		if h.open[id] != nil {
			return fmt.Errorf("attempt %v begins twice", id)
		}
		h.open[id] = a
		h.Attempts = append(h.Attempts, a)
		return nil
	}
	a := h.open[id]
	if a == nil {
		return fmt.Errorf("%q of attempt %v, which never began", e.Op, id)
	}
	a.add(e)
	return nil
}

// Kill records when a process was sent the signal that kills it. All its events
// must have been added.
func (h *History) Kill(proc, life int, at clock.Instant) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.End = max(h.End, at)
	for _, a := range h.Attempts {
		if a.Proc == proc && a.Life == life && !a.Over && (a.Outcome == Granted || a.Answered == 0) {
			a.Killed = at
		}
	}
}

// Begin notes that a fault has begun. Over notes its end.
func (h *History) Begin(on, what string) *Fault {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := &Fault{At: Now(), On: on, What: what}
	h.Faults = append(h.Faults, f)
	return f
}

// Over records the end of f.
func (h *History) Over(f *Fault) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f.End = Now()
	h.End = max(h.End, f.End)
}

// kindOf returns the kind of a lock.
func kindOf(h *History, lock int) store.Kind {
	if lock < len(h.Kinds) {
		return h.Kinds[lock].Normal()
	}
	return store.Kind{}.Normal()
}

// granted returns the granted attempts of one lock.
func (h *History) granted(lock int) []*Attempt {
	var all []*Attempt
	for _, a := range h.Attempts {
		if a.Lock == lock && a.Outcome == Granted {
			all = append(all, a)
		}
	}
	return all
}
