package etcdstore

import (
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/internal/audience"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/gate"
	"github.com/leasehold-dev/leasehold/internal/unclaimed"
	"github.com/leasehold-dev/leasehold/store"
)

// core is what the methods of a Store work with.
type core struct {
	*link
	pool      *pool
	holds     holds
	inbox     *inbox
	batches   *batches
	searches  searches
	refreshes *refreshes
	broken    audience.Audience
	rejoined  unclaimed.Places[*place]
	gate      *gate.Gate

	cluster atomic.Pointer[judged]
	asked   atomic.Int64 // when the cluster was last asked about itself
}

// place is a key of ours, or a request for one.
type place struct {
	of        store.Lease
	prefix    string
	key       string
	lease     *lease
	create    int64  // 0: the key is not known to be there
	slot      string // the key of its slot, if it has entered a lock that several can hold
	contended bool   // others waited behind it when it entered
	mailbox   *mailbox
	sent      clock.Instant // when a place that comes with a release was asked for
	// ahead is how many places are before it at most, while it waits.
	ahead int
	// unlikely is for how long the lock is not expected to come to the place.
	unlikely time.Duration
	// waited is how long the place took to get the lock.
	waited time.Duration
}

func (s *core) newPlace(of store.Lease, l *lease) *place {
	return &place{of: of, prefix: s.layout.lock(of.Name), key: s.layout.key(of.Name, l.id), lease: l}
}

// own notes that the place has the lock.
func (s *core) own(p *place) *hold {
	h := &hold{key: p.key, create: p.create, slot: p.slot, contended: p.contended, waited: p.waited, lease: p.lease}
	s.holds.put(p.of.Name, p.of.Owner, h, s.clock.Now())
	if s.inbox.holderProcess() != "" {
		s.inbox.start()
	}
	return h
}

func (s *link) granted(revision int64) store.Grant {
	return store.Grant{Token: tokenAt(s.floor, revision)}
}
