package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold-dev/leasehold/store"
)

// A client that notices that the data of the cluster was replaced grants nothing for as long as
// the longest lease that it knows of. So before a client asks for a lease of more than
// longest.Least, it records the TTL under a key. The others read it when they examine the
// cluster, and in the data that took the place of the old.

// raise records the longest TTL of some leases, if that is needed.
func (s *link) raise(ctx context.Context, op string, leases ...store.Lease) error {
	for _, l := range leases {
		if s.replaced.longest.Covers(l.TTL) {
			continue
		}
		if err := s.recordTTL(ctx, l.TTL); err != nil {
			return s.refused(ctx, op, l.Name, false, err)
		}
	}
	return nil
}

// recordTTL records ttl if it is the longest, and reads the longest.
func (s *link) recordTTL(ctx context.Context, ttl time.Duration) error {
	key := s.layout.longest()
	t := txn{then: []operation{get(key)}}
	for {
		asked := s.clock.Now()
		r, _, err := s.commit(ctx, t)
		var q *quarantineError
		if err != nil && !(r != nil && errors.As(err, &q)) {
			return err
		}
		var is time.Duration
		var revision int64
		if r.Succeeded && len(t.ifs) > 0 {
			is = ttl
		} else if kvs := r.Responses[0].GetResponseRange().Kvs; len(kvs) == 1 {
			revision = kvs[0].ModRevision
			if is, err = time.ParseDuration(string(kvs[0].Value)); err != nil {
				return fmt.Errorf("key %q: %w", key, err)
			}
		}
		if s.replaced.longest.Note(is, asked); is >= ttl {
			return nil
		}
		t = txn{
			ifs:  []condition{modified(key, revision)},
			then: []operation{put(key, ttl.String(), clientv3.NoLease)},
			els:  []operation{get(key)},
		}
	}
}
