package zkstore

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/zkstore/internal/session"
)

// confirm grants again what the owner has, or returns store.ErrNotHeld.
func (s *Store) confirm(ctx context.Context, r store.AcquireRequest, start clock.Instant) (store.Grant, error) {
	if err := s.renew(ctx, r.Lease, start, true); err != nil {
		return store.Grant{}, err
	}
	l := s.leases.get(leaseKey{r.Name, r.Owner})
	if l == nil {
		return store.Grant{}, store.ErrNotHeld
	}
	return store.Grant{Token: l.token, Spare: min(l.spare, r.Spare)}, nil
}

// renew makes the lease of l.Owner last for its TTL from start. If the lease is in
// another session, of this store or of another, renew moves it. join is set for an
// attempt that joins the lease.
func (s *Store) renew(ctx context.Context, l store.Lease, start clock.Instant, join bool) error {
	h := s.leases.get(leaseKey{l.Name, l.Owner})
	if h != nil && s.leases.extend(h, l.TTL) && h.place.Load().Class() >= l.TTL && !h.place.Load().Ended() {
		done, err := s.renewInPlace(ctx, h, l, start, join)
		if done || err != nil {
			return err
		}
	}
	ss, leave, err := s.tree(ctx, max(l.TTL, ttlOf(h, s.maxTTL)))
	if err != nil {
		return err
	}
	defer leave()
	for {
		f, ok, err := ss.find(ctx, l.Name, l.Owner)
		switch {
		case err != nil:
			return err
		case !ok || f.answer.Verdict != rule.Granted:
			if h != nil && s.leases.remove(h) {
				h.place.Load().leave()
			}
			return store.ErrNotHeld
		case f.record.ttl() > ss.Class(): // it lasts longer than is asked for
			leave()
			if ss, leave, err = s.tree(ctx, min(f.record.ttl(), s.maxTTL)); err != nil {
				return err
			}
			f.record.TTL = min(f.record.TTL, micros(s.maxTTL))
		}
		moved, err := s.move(ctx, ss, f, l, start, join, h)
		if moved || err != nil {
			return err
		}
	}
}

// ttlOf returns the TTL of the lease, 0 if it is nil.
func ttlOf(h *lease, most time.Duration) time.Duration {
	if h == nil {
		return 0
	}
	return min(h.place.Load().record.ttl(), most)
}

// renewInPlace renews a lease in the session that it is in. done is false if it is no
// longer there.
func (s *Store) renewInPlace(ctx context.Context, h *lease, l store.Lease, start clock.Instant, join bool) (done bool, err error) {
	p := h.place.Load()
	if _, err := p.Prove(ctx, start); err != nil {
		if p.Ended() {
			return false, nil
		}
		return false, err
	}
	rec := p.record
	rec.TTL = max(rec.TTL, micros(l.TTL))
	if join && rec.Attempt != l.Attempt {
		rec.Attempt = ""
	}
	if rec.TTL == p.record.TTL && rec.Attempt == p.record.Attempt {
		// The session has just proven to live: what the server says comes after that.
		ok, err := session.Again(ctx, p.Session, func(c *zk.Conn) (bool, error) {
			ok, _, err := c.Exists(p.path())
			return ok, err
		})
		return ok, err
	}
	_, err = session.Again(ctx, p.Session, func(c *zk.Conn) (*zk.Stat, error) { return c.Set(p.path(), rec.encode(), -1) })
	if errors.Is(err, zk.ErrNoNode) {
		return false, nil
	}
	if err != nil {
		return false, explain(err, p.path())
	}
	next := *p
	next.record = rec
	h.place.Store(&next)
	return true, nil
}

// move makes the place anew in a session of this store, with the same number, in one
// transaction. It returns false if the place has changed meanwhile.
func (s *Store) move(ctx context.Context, ss tree, f found, l store.Lease, start clock.Instant, join bool, old *lease) (bool, error) {
	rec := f.record
	rec.Token = tokenOf(f.record, f.czxid)
	rec.TTL = max(rec.TTL, micros(l.TTL))
	if join && rec.Attempt != l.Attempt {
		rec.Attempt = ""
	}
	mark := newMark(l.Owner)
	p := &place{tree: ss, leave: ss.Enter(), dir: ss.dir(l.Name), record: rec, czxid: f.czxid,
		numbered: numbered{placeName(mark) + f.digits(), f.seq}}
	// Once sent, the transaction counts, even if the caller gives up.
	lasting := context.WithoutCancel(ctx)
	type result struct {
		moved bool
		err   error
	}
	done := make(chan result, 1)
	s.gate.Stay()
	go func() {
		defer s.gate.Leave()
		moved, err := ss.replace(lasting, p, p.dir+"/"+f.name)
		if moved {
			if old != nil && s.leases.remove(old) {
				old.place.Load().leave()
			}
			s.leases.add(newLease(l.Name, p), l.TTL, s.expired)
		} else {
			p.leave()
		}
		done <- result{moved, err}
	}()
	select {
	case r := <-done:
		if r.err != nil || !r.moved {
			return r.moved, r.err
		}
		_, err := ss.Prove(ctx, start)
		return true, err
	case <-ctx.Done():
		return false, ctx.Err()
	}
}
