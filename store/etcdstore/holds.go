package etcdstore

import (
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// hold is a place of this process that owns its lock.
type hold struct {
	key    string
	create int64
	// slot is the key of the slot of a place that shares its lock.
	slot string
	// contended is set if others waited behind it when it came to share its lock.
	contended bool
	// waited is how long the place took to get the lock.
	waited time.Duration
	// lease is what the key is attached to. named is the lease that the key is named
	// after, if that is another one of this handle.
	lease, named *lease
	// suspect is set if a message says that the lease was broken. The next renewal then
	// reads the place before it keeps the lease alive: that would make a broken lease last
	// longer.
	suspect atomic.Bool

	mu sync.Mutex
	// next are the places behind this one, the next one first. No place is between two
	// of them or before the first, and none can come to be there: new ones come last.
	next []successor
}

// attachedTo returns the hold of the same place when it is attached to l.
func (h *hold) attachedTo(l *lease) *hold {
	is := &hold{key: h.key, create: h.create, slot: h.slot, contended: h.contended, waited: h.waited, lease: l, named: h.named, next: h.followers()}
	if is.named == nil {
		is.named = h.lease
	}
	return is
}

// at reports whether kv is the place of h.
func (h *hold) at(kv *mvccpb.KeyValue) bool {
	return string(kv.Key) == h.key && kv.CreateRevision == h.create
}

// follow sets the places behind this one.
func (h *hold) follow(next []successor) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next = next
}

func (h *hold) followers() []successor {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.next
}

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
			if h.lease.over(now) {
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

// replace replaces a hold by that of the same place with another lease, unless it was dropped.
func (hs *holds) replace(name, owner string, was, is *hold) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if hs.all[holdKey{name, owner}] != was {
		return
	}
	is.suspect.Store(was.suspect.Load())
	hs.all[holdKey{name, owner}] = is
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
