package torture

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store"
)

// claim is how much of which lock an attempt wants.
type claim struct {
	index  int // of the lock
	lock   *leasehold.Lock
	weight int64
	waits  bool // in the queue
	writes bool // as the writer of a read-write lock
}

// claims draws how much of a lock to want: of a semaphore mostly one permit, of a
// read-write lock mostly to read.
func (h *hammer) claims(lock int) claim {
	name, kind := h.Locks[lock], store.Kind{}
	if len(h.Kinds) > 0 {
		kind = h.Kinds[lock]
	}
	c := claim{index: lock, weight: 1}
	switch {
	case kind.IsMutex():
		c.lock = h.client.Mutex(name)
	case kind.Shared && h.chance(0.25):
		c.lock, c.weight, c.writes = h.client.RW(name).Write(), kind.Limit, true
	case kind.Shared:
		c.lock = h.client.RW(name).Read()
	default:
		if h.chance(0.3) {
			c.weight = 1 + h.rng.Int64N(kind.Limit)
		}
		c.lock = h.client.Semaphore(name, int(kind.Limit)).With(leasehold.LockOptions{Weight: int(c.weight)})
	}
	return c
}
