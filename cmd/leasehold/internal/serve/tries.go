package serve

import (
	"context"
	"hash/maphash"
	"math"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// tries orders the requests of stores over HTTP. A request can be stuck on its way, and arrive
// after the one that repeats it, or takes it back. So a server remembers for a minute which calls
// were repeated or taken back, and which released a lease. It forgets the oldest if there are
// too many, which can cost a lock that stays taken until its TTL is over, and no more. Another
// server does not have to know: what is stuck on its way to this one can arrive nowhere else.
type tries struct {
	mu       sync.Mutex
	seed     maphash.Seed
	latest   memory                   // the number of the last try, by the call
	released memory                   // by the call
	running  map[uint64]chan struct{} // closed when the try of a call ends
}

// takenBack is the number of a try after which there is none.
const takenBack = math.MaxInt

// memory is a map that forgets.
type memory struct {
	known map[uint64]remembered
	ring  []uint64
	next  int
}

type remembered struct {
	n     int
	until clock.Instant
}

const (
	mostRemembered = 1 << 16
	rememberFor    = time.Minute
)

func (m *memory) set(key uint64, n int, now clock.Instant) {
	if m.known == nil {
		m.known = map[uint64]remembered{}
	}
	if _, known := m.known[key]; !known {
		if len(m.ring) < mostRemembered {
			m.ring = append(m.ring, key)
		} else {
			delete(m.known, m.ring[m.next])
			m.ring[m.next] = key
			m.next = (m.next + 1) % mostRemembered
		}
	}
	m.known[key] = remembered{max(n, m.get(key, now)), now.Add(rememberFor)}
}

func (m *memory) get(key uint64, now clock.Instant) int {
	if r, ok := m.known[key]; ok && now < r.until {
		return r.n
	}
	return 0
}

func (t *tries) keyLocked(parts ...string) uint64 {
	if t.seed == (maphash.Seed{}) {
		t.seed = maphash.MakeSeed()
	}
	var h maphash.Hash
	h.SetSeed(t.seed)
	for _, part := range parts {
		h.WriteString(part)
		h.WriteByte(0)
	}
	return h.Sum64()
}

// begin begins the nth try of a call, once no other try of it runs here. It returns false if a
// later try was seen, or ctx ends. The caller calls done at the end. An empty call has one try.
func (t *tries) begin(ctx context.Context, call string, n int, now clock.Instant) (done func(), ok bool) {
	if call == "" {
		return func() {}, true
	}
	for {
		t.mu.Lock()
		key := t.keyLocked(call)
		if t.latest.get(key, now) > n {
			t.mu.Unlock()
			return nil, false
		}
		if n > 0 {
			t.latest.set(key, n, now)
		}
		other := t.running[key]
		if other == nil {
			if t.running == nil {
				t.running = map[uint64]chan struct{}{}
			}
			ended := make(chan struct{})
			t.running[key] = ended
			t.mu.Unlock()
			return func() {
				t.mu.Lock()
				defer t.mu.Unlock()
				delete(t.running, key)
				close(ended)
			}, true
		}
		t.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, false
		}
	}
}

// takeBack refuses all tries of a call from now on.
func (t *tries) takeBack(call string, now clock.Instant) {
	if call != "" {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.latest.set(t.keyLocked(call), takenBack, now)
	}
}

// isTakenBack reports whether a call was taken back.
func (t *tries) isTakenBack(call string, now clock.Instant) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return call != "" && t.latest.get(t.keyLocked(call), now) == takenBack
}

// release notes that a release did what it was to do.
func (t *tries) release(call string, now clock.Instant) {
	if call != "" {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.released.set(t.keyLocked(call), 1, now)
	}
}

// hasReleased reports whether an earlier try of a release did what it was to do.
func (t *tries) hasReleased(call string, now clock.Instant) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return call != "" && t.released.get(t.keyLocked(call), now) > 0
}
