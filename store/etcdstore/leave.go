package etcdstore

import (
	"context"
	"errors"

	"github.com/leasehold-dev/leasehold/store"
)

// leave gives up a place in the background, or the lock that it was given meanwhile. The
// caller is counted at the gate.
func (s *core) leave(p *place) {
	s.gate.Stay()
	go func() {
		defer s.gate.Leave()
		s.leaveNow(context.Background(), p)
	}()
}

// leaveNow is leave in the foreground. The caller is counted at the gate. If it cannot be done in order, it revokes the
// lease of the place: the next one then notices by watching it.
func (s *core) leaveNow(ctx context.Context, p *place) {
	s.inbox.forget(p.mailbox)
	if p.create != 0 {
		if s.leaveOnce(ctx, p) == nil {
			s.pool.done(p.lease)
			return
		}
	}
	s.pool.revoke(p.lease)
}

// leaveOnce removes a place that is known to be there, whether it waits or has the lock.
func (s *core) leaveOnce(ctx context.Context, p *place) error {
	if p.isFar() && !p.lease.tainted.Load() {
		// Those behind it watch it, and notice if there is nobody before it any more.
		r, _, err := s.commit(ctx, txn{ifs: []condition{created(p.key, p.create), modified(p.key, p.create)}, then: []operation{remove(p.key)}})
		if err != nil || r.Succeeded {
			return err
		}
	}
	if !p.of.Kind.IsMutex() {
		return s.leaveShared(ctx, p)
	}
	r, _, err := s.commit(ctx, txn{
		ifs:  []condition{created(p.key, p.create), oldest(p.prefix, p.create)},
		then: []operation{byAge(p.prefix, mostRead)},
		els: []operation{nested(txn{
			ifs:  []condition{created(p.key, p.create)},
			then: []operation{remove(p.key)},
		})},
	})
	switch {
	case r == nil:
		return err
	case !r.Succeeded:
		return nil
	}
	h := &hold{key: p.key, create: p.create, lease: p.lease}
	all := entriesOf(r.Responses[0].GetResponseRange().Kvs)
	h.follow(successors(p.prefix, all[1:]))
	e := ending{s: s, of: p.of, prefix: p.prefix, hold: h}
	if err := e.run(ctx); err != nil && !errors.Is(err, store.ErrNotHeld) {
		return err
	}
	return nil
}

// leaveShared is leaveOnce for a lock that several can hold.
func (s *core) leaveShared(ctx context.Context, p *place) error {
	if p.lease.tainted.Load() {
		return errUnsure
	}
	l := leaving{s: s, name: p.of.Name, key: p.key, create: p.create, slot: p.slot, contended: p.slot == ""}
	if err := l.run(ctx); !errors.Is(err, store.ErrNotHeld) {
		return err
	}
	return nil
}

// errUnsure means that a place may have entered, or may still do.
var errUnsure = constError("a request for the place may still be in flight")
