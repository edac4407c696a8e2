package etcdstore

import "time"

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
