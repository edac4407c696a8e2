package etcdstore

import (
	"context"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/gate"
	"github.com/leasehold-dev/leasehold/internal/gather"
)

// A server reads all places of a lock to find the oldest, or the one before another: about a
// millisecond for a thousand. So waiters that are far back do that once, when few others of their process
// do, and then watch the place before theirs. They refresh their places together, and read nothing else.

// isFar reports whether so many places are before this one that it need not read who they are.
func (p *place) isFar() bool { return p.ahead > mostRead }

const (
	// mostSearches is how many waiters of a process read queues at once, if these are long.
	mostSearches = 8
	// slowSearch is how long an answer takes if too many waiters of all processes read the queue. One
	// that takes longer than tryTime is asked for again, which makes it worse.
	slowSearch = tryTime / 2
)

// searches is for the waiters that join queues, or read them from far back. One that sends to slots may
// do so, and calls end afterwards.
type searches struct {
	slots chan struct{}

	mu     sync.Mutex
	parked int // slots that nobody uses
}

func (s *searches) begin(ctx context.Context) error {
	select {
	case s.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// end frees the slot of a waiter that has read the queue. After a slow answer the slot stays parked, so
// that fewer waiters read at once, but never the last one; a quick answer brings one back.
func (s *searches) end(took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case took > slowSearch && s.parked < mostSearches-1:
		s.parked++
		return
	case took < slowSearch/4 && s.parked > 0:
		s.parked--
		<-s.slots
	}
	<-s.slots
}

// refreshes refreshes the places of many waiters together.
type refreshes struct {
	link   *link
	sender *gather.Sender[*refreshing]
}

// refreshing is the refresh of one place. The other fields are set when done is closed.
type refreshing struct {
	key   string
	lease clientv3.LeaseID
	done  chan struct{}

	sent clock.Instant
	left int64 // 0: the lease has expired
	kvs  []*mvccpb.KeyValue
	term uint64
	err  error
}

func newRefreshes(l *link, g *gate.Gate) *refreshes {
	r := &refreshes{link: l}
	r.sender = gather.NewSender(g, gather.Limits{Senders: 1, Steps: mostOps - 1}, r.send)
	return r
}

func (r *refreshes) add(p *place) *refreshing {
	one := &refreshing{key: p.key, lease: p.lease.id, done: make(chan struct{})}
	r.sender.Add(one)
	return one
}

func (r *refreshes) send(take func() []*refreshing) {
	all := take()
	if len(all) == 0 {
		return
	}
	ids := make([]clientv3.LeaseID, len(all))
	for i, one := range all {
		ids[i] = one.lease
	}
	sent := r.link.clock.Now()
	left, err := r.link.keepAlive(context.Background(), ids)
	inParts(&r.link.ops, 1, all, func(some []*refreshing) error {
		err := err
		if err == nil {
			err = r.read(some, left, sent)
		}
		for _, one := range some {
			one.err = err
		}
		return err
	})
	for _, one := range all {
		close(one.done)
	}
}

// read reads places whose leases were kept alive.
func (r *refreshes) read(some []*refreshing, left map[clientv3.LeaseID]int64, sent clock.Instant) error {
	var t txn
	for _, one := range some {
		t.then = append(t.then, get(one.key))
	}
	t.then = append(t.then, logged(some[0].key))
	got, _, err := r.link.commit(context.Background(), t)
	if err != nil {
		return err
	}
	for i, one := range some {
		one.sent, one.left, one.term = sent, left[one.lease], got.Header.RaftTerm
		one.kvs = got.Responses[i].GetResponseRange().Kvs
	}
	return nil
}
