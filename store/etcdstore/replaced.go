package etcdstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/longest"
	"github.com/leasehold-dev/leasehold/store"
)

// replaced notices that the data of the cluster is not what it was: a backup was
// restored, or the servers are other ones. The leases that others hold may then be
// missing there, so nothing is granted until they have ended. Tokens come from the
// revision, so nothing is granted either as long as that is lower than it was.
type replaced struct {
	longest *longest.TTL

	mu       sync.Mutex
	cluster  uint64        // 0: nothing was read yet
	revision int64         // the highest that was read, whatever the data
	base     int64         // the highest that was read in the present data
	term     uint64        // of the leader, in the last answer
	since    clock.Instant // when it was noticed; 0: never
	why      string
	behind   error // the last answer had a revision that had been before
	split    error // the members are of different clusters
}

// divided notes why the members are not of one cluster, or "". Leases that others hold may be in
// the other cluster, so nothing is granted as long as that is so.
func (r *replaced) divided(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.split = nil; why != "" {
		r.split = quarantined(0, why)
	}
}

// before returns the revision that the answer to a request sent now has at least.
func (r *replaced) before() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.base
}

// has reports whether the last answer was from the cluster with that ID.
func (r *replaced) has(cluster uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cluster == cluster
}

// inTerm returns the term of the leader in the last answer, or 0.
func (r *replaced) inTerm() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.term
}

// observe takes the header of an answer that was agreed on by a majority. least is what
// before returned when the request was sent. The error says why a grant does not count.
func (r *replaced) observe(h *etcdserverpb.ResponseHeader, least int64, now clock.Instant) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.cluster != 0 && h.ClusterId != r.cluster:
		r.why = fmt.Sprintf("the cluster was replaced: its ID was %x and is %x", r.cluster, h.ClusterId)
		r.since, r.base = now, 0
	case h.Revision < least:
		r.why = fmt.Sprintf("the data of the cluster was replaced: its revision was %d and is %d", least, h.Revision)
		r.since, r.base = now, 0
	}
	r.cluster, r.base, r.term = h.ClusterId, max(r.base, h.Revision), h.RaftTerm
	r.behind = nil
	if r.base < r.revision {
		r.behind = quarantined(0, fmt.Sprintf("the revision was %d and is %d, so tokens would be given out again: restore backups with \"etcdutl snapshot restore --bump-revision\", or open the store with a larger Floor under another prefix", r.revision, r.base))
	}
	r.revision = max(r.revision, r.base)
	return r.doubtfulLocked(now)
}

// closed returns an error while no request needs to be sent: nothing is granted.
func (r *replaced) closed(now clock.Instant) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if left := r.leftLocked(now); left > 0 {
		return quarantined(left, r.why)
	}
	return r.split
}

// doubtful returns an error while nothing may be granted.
func (r *replaced) doubtful(now clock.Instant) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.doubtfulLocked(now)
}

func (r *replaced) doubtfulLocked(now clock.Instant) error {
	if left := r.leftLocked(now); left > 0 {
		return quarantined(left, r.why)
	}
	return cmp.Or(r.split, r.behind)
}

// leftLocked returns for how long leases in the data that was replaced may still last.
func (r *replaced) leftLocked(now clock.Instant) time.Duration {
	if r.since == 0 {
		return 0
	}
	return r.since.Add(r.longest.Since(r.since, now)).Sub(now)
}

// unread reports whether the longest TTL was not read since the data was replaced.
func (r *replaced) unread() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.longest.Unread(r.since)
}

type quarantineError struct {
	left time.Duration
	why  string
}

func quarantined(left time.Duration, why string) error { return &quarantineError{left, why} }

func (e *quarantineError) Error() string { return e.why }

// EndsAlone marks a quarantine that no command ends: see store.QuorumError.
func (e *quarantineError) EndsAlone() {}

// of returns the error for the caller of a method.
func (e *quarantineError) of(op, name, node string) error {
	return &store.QuorumError{Op: op, Name: name, Store: "etcd", Need: 1, Nodes: []store.NodeOutcome{{Node: node, Outcome: store.Quarantined, ExpiresIn: e.left, Err: e}}}
}

// A client that notices that the data of the cluster was replaced grants nothing for as long as
// the longest lease that it knows of. So before a client asks for a lease of more than
// longest.Least, it records the TTL under a key. The others read it when they examine the
// cluster, and in the data that took the place of the old.

// raise records the longest TTL of some leases, if that is needed, before a request of the caller. The
// cluster is also asked about itself now and then.
func (s *engine) raise(ctx context.Context, op string, leases ...store.Lease) error {
	s.examineAgain(ctx)
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
