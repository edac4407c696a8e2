package etcdstore

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// ParseURL exposes the reading of URLs.
var ParseURL = parseURL

// TrustInbox makes waiters read the queue only when they refresh their places.
func TrustInbox(s *store.Store) { engineOf(s).lookAfter = time.Hour }

// Asks returns the endpoint of the member that the store asks.
func Asks(s *store.Store) string {
	m, _ := engineOf(s).members.current()
	return m.endpoint
}

// SendTogether makes all steps that can go with others do so, even if there are no others.
func SendTogether(st *store.Store) {
	s := engineOf(st)
	s.batches = newBatches(s.link, s.gate, 0)
}

// Queued returns how many steps wait to be sent together.
func Queued(s *store.Store) int { return engineOf(s).batches.sender.Queued() }

// Believe makes the store think that a place of its own holds the lock.
func Believe(st *store.Store, l store.Lease) {
	s := engineOf(st)
	v, err := s.read(context.Background(), reading{name: l.Name})
	if err != nil {
		panic(err)
	}
	for _, e := range v.places {
		if e.Owner == l.Owner {
			h := newHold(e.key, e.create, "", adopted(e), nil)
			if !l.Kind.IsMutex() {
				h.slot = s.layout.slot(l.Name, 0)
			}
			s.holds.put(l.Name, l.Owner, h, s.clock.Now())
		}
	}
}

// ExamineNow asks the cluster about itself.
func ExamineNow(st *store.Store, ctx context.Context) {
	s := engineOf(st)
	s.note(s.examine(ctx))
}

func engineOf(s *store.Store) *engine { return s.Engine().(*engine) }
