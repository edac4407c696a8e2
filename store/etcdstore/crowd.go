package etcdstore

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/gate"
	"github.com/leasehold-dev/leasehold/internal/gather"
	"github.com/leasehold-dev/leasehold/store"
)

// A server reads all places of a lock to find the oldest, or the one before another: about a
// millisecond for a thousand. So waiters that are far back do that once, when nobody else of their process
// does, and then watch the place before theirs. They refresh their places together, and read nothing else.

// isFar reports whether so many places are before this one that it need not read who they are.
func (p *place) isFar() bool { return p.ahead > mostRead }

const (
	// mostSearches is how many waiters of a process read the queue of one lock at once.
	mostSearches = 4
	// slowSearch is how long an answer takes if too many waiters of all processes read the queue. One
	// that takes longer than tryTime is asked for again, which makes it worse.
	slowSearch = tryTime / 2
)

// searches has a search for each lock that somebody waits for, by its prefix.
type searches struct {
	mu  sync.Mutex
	all map[string]*search
}

// search is for the waiters that read the queue of a lock. One that sends to slots may do so, and calls end
// afterwards.
type search struct {
	slots chan struct{}
	users int // guarded by the mutex of searches

	mu     sync.Mutex
	parked int // slots that nobody uses
}

// end frees the slot of a waiter that has read the queue. After a slow answer the slot stays parked, so
// that fewer waiters read at once, but never the last one; a quick answer brings one back.
func (s *search) end(took time.Duration) {
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

// join returns the search for a lock. leave is called when the waiter does not need it any more.
func (s *searches) join(prefix string) (is *search, leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	is = s.all[prefix]
	if is == nil {
		if s.all == nil {
			s.all = make(map[string]*search)
		}
		is = &search{slots: make(chan struct{}, mostSearches)}
		s.all[prefix] = is
	}
	is.users++
	return is, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if is.users--; is.users == 0 {
			delete(s.all, prefix)
		}
	}
}

// enqueue makes a place when it is the turn of the waiter to read the queue.
func (w *waiting) enqueue(ctx context.Context) (g store.Grant, done bool, err error) {
	select {
	case w.search.slots <- struct{}{}:
		defer w.searched(time.Now())
		return w.turn.enqueue(ctx)
	case <-ctx.Done():
		return g, false, ctx.Err()
	}
}

// searched ends what the waiter began to read at that time.
func (w *waiting) searched(began time.Time) { w.search.end(time.Since(began)) }

// approach is look for a place that is far back: it watches the place before its own. If that isn't
// there any more, or holds the lock, it looks. It frees the slot of the search.
func (w *waiting) approach(ctx context.Context) (g store.Grant, done bool, err error) {
	defer w.searched(time.Now())
	p := w.place
	r, err := w.s.glance(ctx, p.create, before(p.prefix, p.create))
	if r == nil || err != nil {
		return w.turn.look(ctx)
	}
	near := entriesOf(r.Responses[0].GetResponseRange().Kvs)
	if len(near) < 2 || !near[0].is(p) || near[0].mod != p.create || near[1].mod != near[1].create {
		return w.turn.look(ctx)
	}
	w.ahead.watch(w.s.link, near[1].key, r.Header.Revision, w.changes)
	return g, false, nil
}

// spread is how long a waiter waits before it looks because of something that concerns all waiters.
func (w *waiting) spread() time.Duration {
	if !w.place.isFar() {
		return defaultLookAfter
	}
	return defaultLookAfter + rand.N(time.Duration(w.place.ahead)*quickTurn)
}

// refreshes refreshes places that are far back, those of many waiters together.
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
	for len(all) > 0 {
		n := min(len(all), r.link.ops.most()-1)
		some := all[:n]
		if err == nil {
			if err = r.read(some, left, sent); isTooMany(err) && r.link.ops.most()-1 < n {
				err = nil
				continue
			}
		}
		for _, one := range some {
			one.err = err
			close(one.done)
		}
		all = all[n:]
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

// refreshTogether is refresh for a place that is far back. changed is set if it may not wait any more.
func (w *waiting) refreshTogether(ctx context.Context) (there, changed bool, err error) {
	p := w.place
	one := &refreshing{key: p.key, lease: p.lease.id, done: make(chan struct{})}
	w.s.refreshes.sender.Add(one)
	select {
	case <-one.done:
	case <-ctx.Done():
		return false, false, ctx.Err()
	}
	switch {
	case one.err != nil:
		return false, false, one.err
	case one.left == 0:
		w.lost()
		return false, false, nil
	case len(one.kvs) == 0 || one.kvs[0].CreateRevision != p.create:
		return false, false, w.released(ctx)
	}
	e := entryOf(one.kvs[0])
	if e.Broken { // it has had the lock, and did not notice
		return false, false, w.broken()
	}
	p.lease.kept = one.sent
	w.finds(e)
	w.confirm(one.term)
	return true, e.mod != p.create, nil
}
