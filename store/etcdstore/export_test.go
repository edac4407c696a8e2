package etcdstore

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// TrustInbox makes waiters read the queue only when they refresh their places.
func (s *Store) TrustInbox() { s.lookAfter = time.Hour }

// Asks returns the endpoint of the member that the store asks.
func (s *Store) Asks() string {
	m, _ := s.members.current()
	return m.endpoint
}

// SendTogether makes all steps that can go with others do so, even if there are no others.
func (s *Store) SendTogether() { s.batches = newBatches(s.link, s.gate, 0) }

// Queued returns how many steps wait to be sent together.
func (s *Store) Queued() int { return s.batches.sender.Queued() }

// Believe makes the store think that a place of its own holds the lock.
func (s *Store) Believe(l store.Lease) {
	r, _, err := s.commit(context.Background(), txn{then: s.layout.readAll(l.Name)})
	if err != nil {
		panic(err)
	}
	for _, e := range s.view(l.Name, r).places {
		if e.Owner == l.Owner {
			h := &hold{key: e.key, create: e.create, lease: adopted(e)}
			if !l.Kind.IsMutex() {
				h.slot = s.layout.slot(l.Name, 0)
			}
			s.holds.put(l.Name, l.Owner, h, s.clock.Now())
		}
	}
}

// Examine asks the cluster about itself.
func (s *Store) Examine(ctx context.Context) { s.note(s.examine(ctx)) }
