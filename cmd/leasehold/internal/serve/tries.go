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
// too many, which can cost a lock that stays taken until its TTL is over, and no more. Other
// servers need not know: a request that is stuck on its way to this server can arrive nowhere else.
type tries struct {
	mu       sync.Mutex
	latest   memory                   // the number of the last try
	released memory                   // 1
	running  map[callID]chan struct{} // nil until another try waits for the end of this one
}

// takenBack is the number of a try after which there is none.
const takenBack = math.MaxInt

// callID identifies a call. It is zero if the client does not name its calls: each call
// then has one try.
type callID uint64

var seed = maphash.MakeSeed()

// callOf returns the ID of what a client calls call.
func callOf(verb, call string) callID {
	if call == "" {
		return 0
	}
	var h maphash.Hash
	h.SetSeed(seed)
	h.WriteString(verb)
	h.WriteByte(0)
	h.WriteString(call)
	return callID(h.Sum64())
}

// memory is a map that forgets: each entry after rememberFor at the earliest, unless many come.
type memory struct {
	young, old map[callID]int
	since      clock.Instant // when the first entry of young was made
}

const (
	mostRemembered = 1 << 16
	rememberFor    = time.Minute
)

// forget drops old entries.
func (m *memory) forget(now clock.Instant) {
	if age := now.Sub(m.since); len(m.young) >= mostRemembered || len(m.young) > 0 && age > rememberFor {
		m.young, m.old = m.old, m.young
		clear(m.young)
		if age > 2*rememberFor {
			clear(m.old)
		}
	}
}

func (m *memory) set(c callID, n int, now clock.Instant) {
	n = max(n, m.get(c, now))
	if m.young == nil {
		m.young = map[callID]int{}
	}
	if len(m.young) == 0 {
		m.since = now
	}
	m.young[c] = n
}

func (m *memory) get(c callID, now clock.Instant) int {
	m.forget(now)
	if n, ok := m.young[c]; ok {
		return n
	}
	return m.old[c]
}

// try is a try of a call that is under way.
type try struct {
	t *tries
	c callID
}

// begin begins the nth try of a call, once no other try of it runs here. It returns false if a
// later try was seen, or ctx ends. The caller calls done at the end.
func (t *tries) begin(ctx context.Context, c callID, n int, now clock.Instant) (_ try, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		y, ok, running := t.beginLocked(c, n, now)
		if !running {
			return y, ok
		}
		other := t.running[c]
		if other == nil {
			other = make(chan struct{})
			t.running[c] = other
		}
		t.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
		}
		t.mu.Lock()
		if ctx.Err() != nil {
			return try{}, false
		}
	}
}

// beginNow is begin, but returns false if another try runs.
func (t *tries) beginNow(c callID, n int, now clock.Instant) (_ try, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	y, ok, _ := t.beginLocked(c, n, now)
	return y, ok
}

// beginLocked begins a try. running reports whether it cannot since another one runs.
func (t *tries) beginLocked(c callID, n int, now clock.Instant) (_ try, ok, running bool) {
	if c == 0 {
		return try{}, true, false
	}
	if t.latest.get(c, now) > n {
		return try{}, false, false
	}
	if n > 0 {
		t.latest.set(c, n, now)
	}
	if _, running := t.running[c]; running {
		return try{}, false, true
	}
	if t.running == nil {
		t.running = map[callID]chan struct{}{}
	}
	t.running[c] = nil
	return try{t, c}, true, false
}

// done ends a try.
func (y try) done() {
	if y.t == nil {
		return
	}
	y.t.mu.Lock()
	defer y.t.mu.Unlock()
	if others := y.t.running[y.c]; others != nil {
		close(others)
	}
	delete(y.t.running, y.c)
}

// takeBack refuses all tries of a call from now on.
func (t *tries) takeBack(c callID, now clock.Instant) {
	if c != 0 {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.latest.set(c, takenBack, now)
	}
}

// isTakenBack reports whether a call was taken back.
func (t *tries) isTakenBack(c callID, now clock.Instant) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return c != 0 && t.latest.get(c, now) == takenBack
}

// release notes that a release did what it was to do.
func (t *tries) release(c callID, now clock.Instant) {
	if c != 0 {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.released.set(c, 1, now)
	}
}

// hasReleased reports whether an earlier try of a release did what it was to do.
func (t *tries) hasReleased(c callID, now clock.Instant) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return c != 0 && t.released.get(c, now) > 0
}
