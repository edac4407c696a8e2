package serve

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// undone knows, for a minute, which attempts to acquire were taken back, and which owners were
// released lately: a request can be stuck on its way, and arrive after the one that takes it
// back. It forgets the oldest if there are too many, which costs a lock that is taken until its
// TTL is over, and no more. Another server does not have to know: a request that is stuck on
// its way to this one can arrive nowhere else.
type undone struct {
	mu       sync.Mutex
	seed     maphash.Seed
	attempts memory
	released memory
}

// memory is a set that forgets.
type memory struct {
	until map[uint64]clock.Instant
	ring  []uint64
	next  int
}

const (
	remembered  = 1 << 16
	rememberFor = time.Minute
)

func (m *memory) add(key uint64, now clock.Instant) {
	if m.until == nil {
		m.until = map[uint64]clock.Instant{}
	}
	if _, known := m.until[key]; !known {
		if len(m.ring) < remembered {
			m.ring = append(m.ring, key)
		} else {
			delete(m.until, m.ring[m.next])
			m.ring[m.next] = key
			m.next = (m.next + 1) % remembered
		}
	}
	m.until[key] = now.Add(rememberFor)
}

func (m *memory) has(key uint64, now clock.Instant) bool {
	until, ok := m.until[key]
	return ok && now < until
}

func (u *undone) key(l store.Lease) uint64 {
	if u.seed == (maphash.Seed{}) {
		u.seed = maphash.MakeSeed()
	}
	var h maphash.Hash
	h.SetSeed(u.seed)
	for _, part := range []string{l.Name, "\x00", l.Owner, "\x00", l.Attempt} {
		h.WriteString(part)
	}
	return h.Sum64()
}

// undo notes that the attempt of l was taken back.
func (u *undone) undo(l store.Lease, now clock.Instant) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.attempts.add(u.key(l), now)
}

// isUndone reports whether the attempt of l was taken back.
func (u *undone) isUndone(l store.Lease, now clock.Instant) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.attempts.has(u.key(l), now)
}

// release notes that the lease of l was released.
func (u *undone) release(l store.Lease, now clock.Instant) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.released.add(u.key(l), now)
}

// isReleased reports whether the lease of l was released.
func (u *undone) isReleased(l store.Lease, now clock.Instant) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.released.has(u.key(l), now)
}
