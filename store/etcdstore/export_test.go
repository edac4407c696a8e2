package etcdstore

import "time"

// TrustInbox lets waiters look only when they refresh their places.
func (s *Store) TrustInbox() { s.lookAfter = time.Hour }
