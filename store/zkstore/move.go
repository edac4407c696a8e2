package zkstore

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
)

// found is a place of an owner, in whatever session.
type found struct {
	numbered
	record record
	czxid  int64
	// answer is what the place has.
	answer rule.Answer
}

// find looks for the place of an owner, as the leader knows it. ok is false if there is
// none.
func (ss *session) find(ctx context.Context, name, owner string) (f found, ok bool, err error) {
	if err := ss.sync(ctx); err != nil {
		return f, false, err
	}
	dir := ss.s.dir(name)
	q, err := ss.children(ctx, dir)
	if err != nil {
		return f, false, err
	}
	mark := ownerMark(owner)
	for i, c := range q {
		if !c.isOf(mark) {
			continue
		}
		n, there, err := ss.get(ctx, dir+"/"+c.name)
		if err != nil {
			return f, false, err
		}
		if rec, ours := decodeRecord(n.data); there && ours && rec.Owner == owner {
			return found{c, rec, n.czxid, q.owns(i)}, true, nil
		}
	}
	return f, false, nil
}

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
	if h != nil && s.leases.extend(h, l.TTL) && h.place.Load().session.class >= l.TTL && !h.place.Load().session.ended() {
		done, err := s.renewInPlace(ctx, h, l, start, join)
		if done || err != nil {
			return err
		}
	}
	ss, leave, err := s.session(ctx, max(l.TTL, ttlOf(h)))
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
		case f.record.ttl() > ss.class: // it lasts longer than is asked for
			leave()
			if ss, leave, err = s.session(ctx, min(f.record.ttl(), s.limits.maxTTL)); err != nil {
				return err
			}
			f.record.TTL = min(f.record.TTL, micros(s.limits.maxTTL))
		}
		moved, err := s.move(ctx, ss, f, l, start, join, h)
		if moved || err != nil {
			return err
		}
	}
}

// ttlOf returns the TTL of the lease, 0 if it is nil.
func ttlOf(h *lease) time.Duration {
	if h == nil {
		return 0
	}
	return min(h.place.Load().record.ttl(), h.place.Load().session.s.limits.maxTTL)
}

// renewInPlace renews a lease in the session that it is in. done is false if it is no
// longer there.
func (s *Store) renewInPlace(ctx context.Context, h *lease, l store.Lease, start clock.Instant, join bool) (done bool, err error) {
	p := h.place.Load()
	if _, err := p.session.prove(ctx, start); err != nil {
		if p.session.ended() {
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
		ok, err := again(ctx, p.session, func(c *zk.Conn) (bool, error) {
			ok, _, err := c.Exists(p.path())
			return ok, err
		})
		return ok, err
	}
	_, err = again(ctx, p.session, func(c *zk.Conn) (*zk.Stat, error) { return c.Set(p.path(), rec.encode(), -1) })
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
func (s *Store) move(ctx context.Context, ss *session, f found, l store.Lease, start clock.Instant, join bool, old *lease) (bool, error) {
	rec := f.record
	rec.Token = tokenOf(f.record, f.czxid)
	rec.TTL = max(rec.TTL, micros(l.TTL))
	if join && rec.Attempt != l.Attempt {
		rec.Attempt = ""
	}
	mark := newMark(l.Owner)
	p := &place{session: ss, leave: ss.enter(), dir: s.dir(l.Name), record: rec, czxid: f.czxid,
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
		_, err := ss.prove(ctx, start)
		return true, err
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// replace makes the node of p and deletes another, in one transaction. It returns false if
// the other is gone.
func (ss *session) replace(ctx context.Context, p *place, other string) (bool, error) {
	for {
		changes := ss.changes()
		_, err := call(ctx, ss, func(c *zk.Conn) ([]zk.MultiResponse, error) {
			return c.Multi(&zk.DeleteRequest{Path: other, Version: -1},
				&zk.CreateRequest{Path: p.path(), Data: p.record.encode(), Acl: ss.s.acl, Flags: zk.FlagEphemeral})
		})
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, zk.ErrNoNode):
			return false, nil
		case !broken(err):
			return false, explain(err, p.dir)
		}
		select {
		case <-changes:
		case <-ss.over:
			return false, ss.reason()
		}
		if err := ss.sync(ctx); err != nil {
			return false, err
		}
		if _, ok, err := ss.get(ctx, p.path()); err != nil || ok {
			return ok, err
		}
	}
}
