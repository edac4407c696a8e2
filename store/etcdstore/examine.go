package etcdstore

import (
	"context"
	"crypto/rand"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold-dev/leasehold/store"
)

// Examination is what Examine found.
type Examination struct {
	Cluster
	// Node names the cluster by its endpoints.
	Node string
	// Unusable is why no lock could be acquired there, or nil.
	Unusable error
	// Restored is set if the data came from a backup, so that tokens may have gone back. It
	// shows in a revision that is larger than the number of entries in the log, each of
	// which adds one at most; a backup that was small, or is long ago, may not show. Restored
	// is not set if the backup was restored with a revision that is higher by LeastBump, or if the
	// locks have a floor of tokens.
	Restored bool
	// Uncompacted is set if the cluster keeps more than MostHistory changes.
	Uncompacted bool
}

// MostHistory is how many changes a cluster keeps before Examine reports it.
const MostHistory = 100_000

// LeastBump is how much higher the revision of a restored backup should be made
// (--bump-revision): more than the changes that were made after the backup.
const LeastBump = 1_000_000_000

// Examine asks the members of the cluster that a URL names about themselves, and tries a lock with a name
// that nobody uses. It changes no other lock. It blocks for a few times
// Options.Timeout at most. The error is about the URL and the options; what is wrong with the cluster is in the
// result.
func Examine(ctx context.Context, url string, o *Options) (Examination, error) {
	endpoints, c, err := parseURL(url, o)
	if err != nil {
		return Examination{}, err
	}
	s := newEngine(endpoints, c)
	defer s.Close()
	e := Examination{Node: s.members.String()}
	e.Cluster = *s.examine(ctx)
	if e.Unusable = s.open(ctx); e.Unusable == nil {
		e.Unusable = s.tryOut(ctx)
	}
	e.Restored = s.floor == 0 && e.Cluster.restored()
	e.Uncompacted = s.keepsHistory(ctx, e.Cluster)
	return e, nil
}

// examined is what the names of locks begin with that Examine tries.
const examined = "leasehold-doctor-"

// tryOut acquires and releases a lock.
func (s *engine) tryOut(ctx context.Context) error {
	l := store.Lease{Name: examined + rand.Text(), Owner: store.NewOwner(), TTL: 10 * time.Second}
	if s.o.MaxTTL > 0 {
		l.TTL = min(l.TTL, s.o.MaxTTL)
	}
	if _, err := s.Acquire(ctx, store.AcquireRequest{Lease: l}); err != nil {
		return err
	}
	if err := s.Renew(ctx, []store.Lease{l})[0]; err != nil {
		return err
	}
	return s.Release(ctx, store.ReleaseRequest{Lease: l})
}

// restored reports whether the data came from a backup and the revision was not made higher.
func (c *Cluster) restored() bool {
	for _, m := range c.Members {
		if more := m.Revision - int64(m.Agreed); m.Err == nil && more > 0 && more < LeastBump {
			return true
		}
	}
	return false
}

// keepsHistory reports whether a revision of long ago can still be read.
func (s *engine) keepsHistory(ctx context.Context, c Cluster) bool {
	var last int64
	for _, m := range c.Members {
		last = max(last, m.Revision)
	}
	if last <= MostHistory {
		return false
	}
	_, err := s.members.run(ctx, func(ctx context.Context, c *client) error {
		_, err := c.Get(ctx, s.layout.floor(), clientv3.WithRev(last-MostHistory))
		return err
	})
	return err == nil
}
