package etcdstore

import (
	"context"
	"slices"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/gate"
)

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
// data of the server, may have ended the others. Those that are still there expire.
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

// revoke ends a lease in the background. That deletes its place, and etcd refuses what
// is still on its way to it. The caller is counted at the gate.
func (p *pool) revoke(l *lease) {
	if l == nil || l.seconds == 0 {
		return
	}
	p.gate.Stay()
	go func() {
		defer p.gate.Leave()
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
			if p.gate.Closed() || !sleep(ctx, 100*time.Millisecond) {
				p.o.Logger.Warn("cannot revoke a lease; its lock may stay taken until it ends", "lease", suffix(l.id), "lasts", l.lasts, "err", p.failed(context.Background(), "revoke", "", false, err))
				return
			}
		}
	}()
}
