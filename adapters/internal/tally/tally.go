// Package tally turns the events of clients into what metrics count. It knows no metrics
// library: package prometheus and package otel in folder adapters do.
package tally

import (
	"errors"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// Tally follows the calls that wait and the leases that are held. It is safe for
// concurrent use, also by several clients at once. The zero Tally is ready for use.
type Tally struct {
	mu      sync.Mutex
	waiting map[uint64]time.Duration // by call: Waited of its first Waiting
	held    map[grant]int            // how often it was granted: a fixed owner may be used twice
}

// grant identifies what one Acquired or Handed was about.
type grant struct {
	name, owner string
	token       leasehold.Token
}

// Change is what one event changes.
type Change struct {
	// Waiters and Leases are added to the number of calls that wait and to that of leases
	// that are held.
	Waiters, Leases int
	// Waited is how long the call waited after its Waiting event, if the event
	// ends the wait of such a call.
	Waited time.Duration
	// Began reports that the event is the first Waiting of its call.
	Began bool
	// Ended reports that the event ends a call that had to wait.
	Ended bool
	// Over reports that the event ends a hold: it is the release of a lease that was not
	// lost, or its loss.
	Over bool
	// Loss is the cause, in one word, if the event ends a hold by a loss.
	Loss string
}

// Step returns what e changes.
func (t *Tally) Step(e leasehold.Event) (c Change) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held == nil {
		t.waiting, t.held = map[uint64]time.Duration{}, map[grant]int{}
	}
	g := grant{e.Name, e.Owner, e.Token}
	switch e.Kind {
	case leasehold.Waiting:
		if _, known := t.waiting[e.Call]; !known {
			t.waiting[e.Call] = e.Waited
			c.Waiters, c.Began = 1, true
		}
		return c
	case leasehold.Acquired, leasehold.Handed:
		t.held[g]++
		c.Leases = 1
	case leasehold.Failed:
	case leasehold.Lost, leasehold.Released:
		if t.held[g] > 0 { // otherwise it was lost before it was released
			if t.held[g]--; t.held[g] == 0 {
				delete(t.held, g)
			}
			c.Leases, c.Over = -1, true
			if errors.Is(e.Err, leasehold.ErrLost) {
				c.Loss = Cause(e.Err)
			}
		}
		return c
	default:
		return c
	}
	if told, waited := t.waiting[e.Call]; waited {
		delete(t.waiting, e.Call)
		c.Waiters, c.Ended, c.Waited = -1, true, e.Waited-told
	}
	return c
}
