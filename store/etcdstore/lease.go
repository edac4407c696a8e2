package etcdstore

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/gate"
)

// A leader that stands still for longer than leases last, such as in a virtual machine that is
// paused, is replaced. When it goes on, it may revoke leases that are still alive: it knows nothing
// of the keep-alives that its successor has answered. etcd 3.6.15 does so in most cases if more
// than 16 leases are over by its count. It asks for the first 16 before it learns that it was
// replaced, and for the others when these requests have timed out, seven seconds later.
//
// The old leader does not know the leases that were granted under its successor: it learns
// of them and of the successor at once. A term is the time of one leader. So a keep-alive counts
// only in the term in which its lease was granted, and a holder moves to a new lease after each
// change of the leader. Then no leader before the one that has answered a keep-alive knows the
// lease; later ones begin its time again.
//
// The header of an answer has the term of the last entry of the log that the member has applied,
// except that a member which was sent a snapshot of the data shows an earlier one until the next
// entry. So an answer shows the term if its request went through the log. If a backup is
// restored, terms begin anew, so that an earlier one may be the larger.

// lease is an etcd lease. One place uses it at a time.
type lease struct {
	id clientv3.LeaseID
	// seconds is what was asked for, and lasts what the server gave. seconds is 0 for a
	// lease that another handle asked for: it is not ours to use again or to revoke.
	seconds int64
	lasts   time.Duration
	// term is the last term that was known when the lease was asked for, so that it was granted in this
	// one or in a later one; 0: none was known.
	term uint64
	// alive is when the grant was sent, or the last keep-alive that counts.
	alive atomic.Int64
	// kept is when the last keep-alive was sent that was answered, before the place holds its lock.
	// It may not count.
	kept clock.Instant
	// tainted is set if a request that attaches a key to the lease may still be in
	// flight. Such a lease is revoked and not used again.
	tainted atomic.Bool
}

func (l *lease) since() clock.Instant { return clock.Instant(l.alive.Load()) }

// keptAlive notes a keep-alive that was sent at sent, and reports whether it counts. The term is
// that of the answer to a request that was sent after the keep-alive was answered and went through
// the log. That the lease is still there shows in the key, or when a key is attached to it.
func (l *lease) keptAlive(sent clock.Instant, term uint64) bool {
	if !l.isOf(term) {
		return false
	}
	for {
		was := l.alive.Load()
		if was >= int64(sent) || l.alive.CompareAndSwap(was, int64(sent)) {
			return true
		}
	}
}

// covers reports whether the lease lasts for ttl from now.
func (l *lease) covers(ttl time.Duration, now clock.Instant) bool {
	return l.since().Add(l.lasts) >= now.Add(ttl+ttl/100)
}

// over reports whether the lease may have expired.
func (l *lease) over(now clock.Instant) bool { return now >= l.since().Add(l.lasts) }

// isOf reports whether the lease was granted in this term, as far as is known.
func (l *lease) isOf(term uint64) bool { return l.term == term }

// answered is keptAlive for the last keep-alive of a place that does not hold its lock yet.
func (l *lease) answered(term uint64) { l.keptAlive(l.kept, term) }

// unconfirmed reports whether the last such keep-alive does not count yet.
func (l *lease) unconfirmed() bool { return l.kept > l.since() }

// pool has leases that no place uses. Their names are used again, because etcd keeps an
// index entry for each key that there ever was until it is compacted. Nobody renews
// leases in the pool: they expire.
type pool struct {
	*link
	gate *gate.Gate

	mu   sync.Mutex
	free map[int64][]*lease // by seconds, the latest last
}

// secondsMore is how much longer a lease is than a TTL, so that it can be used again for some time
// without a keep-alive.
const secondsMore = 1

// secondsFor returns how long a lease for a TTL is, in whole seconds.
func secondsFor(ttl time.Duration) int64 {
	return int64((ttl+time.Second-1)/time.Second) + secondsMore
}

func (p *pool) take(seconds int64, now clock.Instant) *lease {
	p.mu.Lock()
	defer p.mu.Unlock()
	for all := p.free[seconds]; len(all) > 0; all = p.free[seconds] {
		l := all[len(all)-1]
		p.free[seconds] = all[:len(all)-1]
		if !l.over(now) {
			return l
		}
	}
	return nil
}

func (p *pool) put(l *lease, now clock.Instant) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free == nil {
		p.free = make(map[int64][]*lease)
	}
	all := p.free[l.seconds]
	over := 0
	for over < len(all) && all[over].over(now) {
		over++
	}
	p.free[l.seconds] = append(slices.Delete(all, 0, over), l)
}

// forget drops all leases, because one was found to be gone: what ended it, such as lost
// data of the server, may have ended the others. Leases that are still there expire.
func (p *pool) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = nil
}

// leaseFor returns a lease that lasts for ttl from now, once a majority has answered a request for
// its place. It can block for a request.
func (p *pool) leaseFor(ctx context.Context, ttl time.Duration) (*lease, error) {
	seconds := secondsFor(ttl)
	for {
		now := p.clock.Now()
		l := p.take(seconds, now)
		if l == nil {
			return p.grant(ctx, seconds)
		}
		if !l.isOf(p.replaced.inTerm()) {
			continue // it expires by itself
		}
		if l.covers(ttl, now) {
			l.kept = l.since()
			return l, nil
		}
		left, err := p.keepAlive(ctx, []clientv3.LeaseID{l.id})
		if err != nil {
			return nil, err
		}
		if left[l.id] > 0 {
			l.kept = now
			return l, nil
		}
	}
}

func (p *pool) grant(ctx context.Context, seconds int64) (*lease, error) {
	l := &lease{seconds: seconds, term: p.replaced.inTerm()}
	_, err := p.members.run(ctx, func(ctx context.Context, c *client) error {
		sent := p.clock.Now()
		r, err := c.Grant(ctx, seconds)
		if err != nil {
			return err
		}
		l.id, l.lasts, l.kept = r.ID, time.Duration(r.TTL)*time.Second, sent
		l.alive.Store(int64(sent))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// done takes back a lease whose place is certainly gone.
func (p *pool) done(l *lease) {
	switch {
	case l == nil || l.seconds == 0:
	case l.tainted.Load():
		p.revoke(l)
	default:
		p.put(l, p.clock.Now())
	}
}

// drop is called with a lease that a place has left for another one. It expires by itself, unless a
// request that comes late may make the place there again.
func (p *pool) drop(l *lease) {
	if l.tainted.Load() {
		p.revoke(l)
	}
}

// revoke ends a lease in the background. That deletes its place, and etcd refuses what
// is still on its way to it. The caller is counted at the gate.
func (p *pool) revoke(l *lease) {
	if l == nil || l.seconds == 0 {
		return
	}
	p.gate.Go(func() {
		// Later there is nothing left to revoke, unless a keep-alive came late.
		ctx, cancel := context.WithTimeout(context.Background(), l.lasts+time.Second)
		defer cancel()
		for {
			_, err := p.members.run(ctx, func(ctx context.Context, c *client) error {
				_, err := c.Revoke(ctx, l.id)
				return err
			})
			if err == nil || isGone(err) {
				return
			}
			if p.gate.Closed() || !clock.Sleep(ctx, 100*time.Millisecond) {
				p.o.Logger.Warn("cannot revoke a lease; its lock may stay taken until it ends", "lease", suffix(l.id), "lasts", l.lasts, "err", p.failed(context.Background(), "revoke", "", false, err))
				return
			}
		}
	})
}
