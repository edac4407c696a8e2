package zkstore

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/zkstore/internal/zk"
)

// leaseKey identifies a lease.
type leaseKey struct{ name, owner string }

// lease is a lease whose place is in a session of this store.
type lease struct {
	key   leaseKey
	place atomic.Pointer[place]
	token fence.Token
	slot  int64
	timer *time.Timer
	until time.Time // when it ends unless it is renewed
}

// leases are the leases of a store. A lease that nobody renews is ended by a timer, since
// the session lives on with the process.
type leases struct {
	mu    sync.Mutex
	all   map[leaseKey]*lease
	ended bool
}

// newLease returns the lease of a place that has the lock.
func newLease(name string, p *place) *lease {
	l := &lease{key: leaseKey{name, p.record.Owner}, token: tokenOf(p.record, p.czxid), slot: p.record.slot(p.numbered)}
	l.place.Store(p)
	return l
}

// grant returns what the owner of the lease is granted.
func (l *lease) grant() store.Grant { return store.Grant{Token: l.token, Slot: l.slot} }

// is reports whether the token is that of the lease, also after a downgrade that is under way.
func (l *lease) is(token fence.Token) bool { return token == l.token || token == downgraded(l.token) }

// keep remembers what the node of place p has, unless the lease has moved. A later write may have been
// remembered already: an attempt that others have joined stays without a name.
func (l *lease) keep(p *place, rec record) {
	for {
		was := l.place.Load()
		if was.path() != p.path() {
			return
		}
		next := *was
		next.record = rec
		next.record.TTL = max(rec.TTL, was.record.TTL)
		if was.record.Attempt == "" {
			next.record.Attempt = ""
		}
		if l.place.CompareAndSwap(was, &next) {
			return
		}
	}
}

// add keeps a lease, unless a newer place of it is kept. If nobody renews the lease for ttl, it is
// removed, and expire is called with its place.
func (t *leases) add(l *lease, ttl time.Duration, expire func(*place)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return
	}
	if t.all == nil {
		t.all = make(map[leaseKey]*lease)
	}
	if old := t.all[l.key]; old != nil {
		if old.place.Load().czxid > l.place.Load().czxid {
			return
		}
		old.timer.Stop()
	}
	l.until = time.Now().Add(ttl)
	l.timer = time.AfterFunc(ttl, func() {
		if t.due(l) {
			expire(l.place.Load())
		}
	})
	t.all[l.key] = l
}

// due is called when the timer has fired. It removes a lease that is over, and reports whether it did.
func (t *leases) due(l *lease) (over bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all[l.key] != l {
		return false
	}
	if left := time.Until(l.until); left > 0 {
		l.timer.Reset(left)
		return false
	}
	delete(t.all, l.key)
	return true
}

// get returns the lease, or nil.
func (t *leases) get(key leaseKey) *lease {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all[key]
}

// extend makes the lease last for ttl from now, and never shortens it. It returns false if the lease is
// not kept any more.
func (t *leases) extend(l *lease, ttl time.Duration) (kept bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if kept = t.all[l.key] == l; kept {
		l.until = time.Now().Add(max(ttl, time.Until(l.until)))
	}
	return kept
}

// remove removes a lease and reports whether it was kept.
func (t *leases) remove(l *lease) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all[l.key] != l {
		return false
	}
	l.timer.Stop()
	delete(t.all, l.key)
	return true
}

// close stops all timers, and returns the sessions of the leases.
func (t *leases) close() map[*zk.Session]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	in := make(map[*zk.Session]bool)
	for _, l := range t.all {
		l.timer.Stop()
		in[l.place.Load().Session] = true
	}
	return in
}
