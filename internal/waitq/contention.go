package waitq

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

const (
	// rejoinWithin is how soon after a release a client has to want the lock again.
	rejoinWithin = 10 * time.Millisecond
	// rejoinAfter is how many times in a row it has to have done so. After each
	// reservation that nobody took it is four times as many, up to rejoinMost, since a
	// place that nobody wants costs others more than one that is wanted saves.
	rejoinAfter, rejoinMost = 4, 4096
)

// Contention is what a client remembers of a lock that other clients want too. With
// contention, to enter the store's queue at once is cheapest; without it, a single
// attempt is.
type Contention struct {
	busy       bool          // it was held when it was last asked for
	releasedAt clock.Instant // when it was released; 0: not since it was asked for
	returns    int           // how many times in a row it was asked for soon after that
	needs      int           // how many are needed to expect it again; 0: rejoinAfter
}

// Contentions is the contention of some locks, by a hash of their names.
type Contentions [256]Contention

// Of returns the contention of the lock of that name.
func (c *Contentions) Of(name string) *Contention {
	h := uint32(2166136261) // FNV-1a, which is the same in every run
	for i := range len(name) {
		h = (h ^ uint32(name[i])) * 16777619
	}
	return &c[h%uint32(len(c))]
}

// Busy reports whether the lock was held when it was last waited for.
func (c *Contention) Busy() bool { return c.busy }

// Expected reports whether this client will want the lock again after its release.
func (c *Contention) Expected() bool {
	return c.busy && c.returns >= max(c.needs, rejoinAfter)
}

// Released notes that the lock was released without a place for the next wait.
func (c *Contention) Released(now clock.Instant) {
	if c.busy {
		c.releasedAt = now
	}
}

// asked notes that the lock is asked for.
func (c *Contention) asked(now clock.Instant) {
	if c.releasedAt == 0 {
		return
	}
	if now.Sub(c.releasedAt) <= rejoinWithin {
		c.rejoined()
	} else {
		c.returns = 0
	}
	c.releasedAt = 0
}

// rejoined notes that this client wanted the lock again. If it does so often, fewer
// times are needed to expect it.
func (c *Contention) rejoined() {
	if c.returns++; c.returns >= 4*max(c.needs, rejoinAfter) {
		c.needs /= 2
		c.returns = max(c.needs, rejoinAfter)
	}
}

// missed notes that a reservation was not taken.
func (c *Contention) missed() {
	c.returns, c.needs = 0, min(4*max(c.needs, rejoinAfter), rejoinMost)
}
