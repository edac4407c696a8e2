package holds

import (
	"maps"
	"runtime"
	"sync"
	"time"
	"weak"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/leasefsm"
)

// A store may say that a lease was broken. The client then renews it at once, and its
// holder learns from the refusal, as it would from that of the next renewal. A hint
// that is false costs one renewal.

const (
	// hintPause is the least time between two looks at all leases, however many hints come.
	hintPause = 50 * time.Millisecond
	// maxHints is how many hints are kept until the next look at all leases; further ones are dropped. It is
	// also about how many owners hints.early keeps.
	maxHints = 1024
)

// hints are the owners of leases that are said to have been broken.
type hints struct {
	mu     sync.Mutex
	owners map[string]bool
	next   clock.Instant // when the leases may be looked at again

	// early has the owners that a hint named while the client had no lease of theirs: the
	// grant may not have arrived yet, for long if the process is stopped. It is guarded by the
	// client's mutex, not by mu.
	early map[string]bool
}

// listen has c follow the hints of the store about broken leases, for as long as c is in use.
func (c *Holds) listen() {
	user := weak.Make(c)
	stop := c.Store.NotifyBroken(func(owner string) {
		if c := user.Value(); c != nil {
			c.hinted(owner)
		}
	})
	runtime.AddCleanup(c, func(stop func()) { stop() }, stop)
}

// hinted has the leases of owner renewed. It does not block.
func (c *Holds) hinted(owner string) {
	h := &c.hints
	h.mu.Lock()
	defer h.mu.Unlock()
	switch len(h.owners) {
	case maxHints:
		return
	case 0:
		h.owners = map[string]bool{}
		time.AfterFunc(max(1, h.next.Sub(c.Clock.Now())), func() { c.Guard.Run(c.followHints, nil) })
	}
	h.owners[owner] = true
}

// followHints has all leases renewed that were hinted at, and remembers the other hints.
func (c *Holds) followHints() {
	h := &c.hints
	h.mu.Lock()
	owners := h.owners
	h.owners, h.next = nil, c.Clock.Now().Add(hintPause)
	h.mu.Unlock()

	now := c.lock()
	defer c.mu.Unlock()
	for _, h := range c.renewer.Find(func(h *hold) bool { return owners[h.req.Owner] }) {
		h.stepLocked(leasefsm.Hinted, 0, now)
		if h.req.Attempt == "" { // otherwise the owner may have asked for other locks
			delete(owners, h.req.Owner)
		}
	}
	if c.hints.early == nil || len(c.hints.early) >= maxHints {
		c.hints.early = make(map[string]bool, len(owners))
	}
	maps.Copy(c.hints.early, owners)
}

// followEarlyLocked has h renewed, whose grant has arrived, if it was hinted at before.
func (c *Holds) followEarlyLocked(h *hold, now clock.Instant) {
	if c.hints.early[h.req.Owner] {
		delete(c.hints.early, h.req.Owner)
		h.stepLocked(leasefsm.Hinted, 0, now)
	}
}
