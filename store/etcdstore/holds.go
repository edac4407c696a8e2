package etcdstore

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// place is a key of ours, or a request for one.
type place struct {
	of      store.Lease
	prefix  string
	key     string
	lease   *lease
	create  int64  // 0: the key is not known to be there
	slot    string // the key of its slot, if it has entered a lock that several can hold
	view    *view  // the lock when the place entered; nil: nobody else was there
	mailbox *mailbox
	sent    clock.Instant // when a place that comes with a release was asked for
	ahead   int           // how many places are before it at most, while it waits
}

func (s *engine) newPlace(of store.Lease, l *lease) *place {
	return &place{of: of, prefix: s.layout.lock(of.Name), key: s.layout.key(of.Name, l.id), lease: l}
}

// entry is the key that is to be made, if process has the inbox of the owner.
func (p *place) entry(process string) entry {
	return entry{record: recordOf(p.of, p.lease, process), key: p.key, lease: p.lease.id}
}

// own notes that the place has the lock.
func (s *engine) own(p *place) {
	s.holds.put(p.of.Name, p.of.Owner, newHold(p.key, p.create, p.slot, p.lease, p.view), s.clock.Now())
	s.inbox.start()
}

// settle is called when the lock has come to the place. It renews the lease of the place if that
// doesn't last for the TTL from start, or if much of it is over. The place may have another lease then.
func (s *engine) settle(ctx context.Context, p *place, start clock.Instant) error {
	since, now := p.lease.since(), s.clock.Now()
	lasts := since >= start || p.lease.covers(p.of.TTL, start)
	if lasts && (now.Sub(since) <= p.of.TTL/2 || p.lease.covers(p.of.TTL, now)) {
		return nil
	}
	r := s.renewals(ctx, []store.Lease{p.of})[0]
	if r.err != nil {
		s.holds.drop(p.of.Name, p.of.Owner, s.holds.get(p.of.Name, p.of.Owner))
		return r.err
	}
	p.lease = r.hold.lease.Load()
	if s.holds.get(p.of.Name, p.of.Owner) == nil { // it was over, and dropped
		s.holds.put(p.of.Name, p.of.Owner, r.hold, s.clock.Now())
	}
	return nil
}

// hold is a place of this process that owns its lock.
type hold struct {
	key    string
	create int64
	slot   string // as in place
	view   *view
	lease  atomic.Pointer[lease] // what the key is attached to
	// suspect is set if a message says that the lease was broken. The next renewal then
	// reads the place before it keeps the lease alive: that would make a broken lease last
	// longer.
	suspect atomic.Bool
}

func newHold(key string, create int64, slot string, l *lease, v *view) *hold {
	h := &hold{key: key, create: create, slot: slot, view: v}
	h.lease.Store(l)
	return h
}

// holdOf returns a place that another handle made.
func holdOf(e entry) *hold { return newHold(e.key, e.create, e.slotKey(), adopted(e), nil) }

// holds are the leases that this process has, as far as it knows. Another handle can
// release them, and they can expire: etcd decides.
type holds struct {
	mu    sync.Mutex
	all   map[holdKey]*hold
	sweep int // size at which holds that are over are dropped
}

type holdKey struct{ name, owner string }

func (hs *holds) put(name, owner string, h *hold, now clock.Instant) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if hs.all == nil {
		hs.all = make(map[holdKey]*hold)
	}
	if len(hs.all) >= max(hs.sweep, 64) {
		for k, h := range hs.all {
			if h.lease.Load().over(now) {
				delete(hs.all, k)
			}
		}
		hs.sweep = 2 * len(hs.all)
	}
	hs.all[holdKey{name, owner}] = h
}

func (hs *holds) get(name, owner string) *hold {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	return hs.all[holdKey{name, owner}]
}

// suspect notes that the lease of an owner, whose place was created at that revision, may
// have been broken.
func (hs *holds) suspect(owner string, create int64) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	for k, h := range hs.all {
		if k.owner == owner && h.create == create {
			h.suspect.Store(true)
		}
	}
}

// drop forgets h, unless the owner has another hold by now.
func (hs *holds) drop(name, owner string, h *hold) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if hs.all[holdKey{name, owner}] == h {
		delete(hs.all, holdKey{name, owner})
	}
}
