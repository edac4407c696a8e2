package zkstore

import (
	"context"
	"errors"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/zkstore/internal/zk"
)

// Renew implements driver.Engine. All leases in one session are renewed by one write (see
// zk.Session.Prove), after which the server is asked for each of them.
func (s *engine) Renew(ctx context.Context, leases []store.Lease) []error {
	errs := make([]error, len(leases))
	start := s.clock.Now()
	each(len(leases), func(i int) {
		errs[i] = s.failed(ctx, "renew", leases[i].Name, s.renew(ctx, leases[i], start, change{}))
	})
	return errs
}

// Downgrade implements driver.Engine: it replaces the writer's place by a reader's with the
// same number, in one transaction.
func (s *engine) Downgrade(ctx context.Context, r store.Lease) (store.Grant, error) {
	g, err := s.renewed(ctx, r, s.clock.Now(), change{read: true})
	return g, s.failed(ctx, "downgrade", r.Name, err)
}

// change is what a renewal does beside that.
type change struct {
	// join is set for an attempt that joins the lease.
	join bool
	// read makes a writer a reader.
	read bool
}

// renewed renews and changes a lease as renew does, and returns its grant.
func (s *engine) renewed(ctx context.Context, l store.Lease, start clock.Instant, c change) (store.Grant, error) {
	if err := s.renew(ctx, l, start, c); err != nil {
		return store.Grant{}, err
	}
	if h := s.leases.get(leaseKey{l.Name, l.Owner}); h != nil {
		return h.grant(), nil
	}
	return store.Grant{}, store.ErrNotHeld
}

// admits returns an error if the place cannot be changed so for the lease l.
func (c change) admits(t tree, p numbered, rec record, l store.Lease) error {
	switch {
	case !c.join && !c.read:
		return nil
	case p.spec != specOf(l.Kind):
		h, _ := t.holder(p, rec, true)
		return &store.KindError{Name: l.Name, Asked: l.Kind, InUse: kindOf(p.spec), Holder: h}
	case c.join && p.weight < max(l.Weight, 1):
		return store.HeavierError("acquire", l)
	}
	return nil
}

// renew makes the lease of l.Owner last for its TTL from start, and changes it. If the
// lease is in another session, of this store or of another, or if a writer is to be a
// reader, renew makes the place anew.
func (s *engine) renew(ctx context.Context, l store.Lease, start clock.Instant, c change) error {
	h := s.leases.get(leaseKey{l.Name, l.Owner})
	if h != nil {
		p := h.place.Load()
		if err := c.admits(p.tree, p.numbered, p.record, l); err != nil {
			return err
		}
		if anew := c.read && !p.needsOthers(); !anew && p.Class() >= l.TTL && !p.Ended() {
			done, err := s.renewInPlace(ctx, h, l, start, c.join)
			if err != nil || done && s.leases.extend(h, l.TTL) {
				return err
			}
		}
	}
	ttl := l.TTL
	if h != nil {
		ttl = max(ttl, min(h.place.Load().record.TTL, s.maxTTL))
	}
	ss, err := s.tree(ctx, ttl)
	if err != nil {
		return err
	}
	// gone forgets the lease, and is the result if the owner does not have it any more.
	gone := func() error {
		if h != nil {
			s.leases.remove(h)
		}
		return store.ErrNotHeld
	}
	for {
		f, ok, err := ss.find(ctx, l.Name, l.Owner)
		switch {
		case err != nil:
			return err
		case !ok || !f.held():
			return gone()
		case f.record.Broken:
			return errBroken
		case f.record.TTL > ss.Class(): // it lasts longer than is asked for
			if ss, err = s.tree(ctx, min(f.record.TTL, s.maxTTL)); err != nil {
				return err
			}
			f.record.TTL = min(f.record.TTL, s.maxTTL)
		}
		if err := c.admits(ss, f.numbered, f.record, l); err != nil {
			return err
		}
		if f.needsOthers() {
			a, err := agree(ctx, ss, ss.dir(l.Name), f.line, f.index)
			if errors.Is(err, errChanged) || err == nil && a.version != f.version {
				continue
			}
			if err != nil {
				return err
			}
		}
		if h != nil && !h.is(tokenOf(f.record, f.czxid)) { // it is a later lease of the owner
			return gone()
		}
		moved, err := s.move(ctx, ss, f, l, start, c)
		if moved || err != nil {
			return err
		}
	}
}

// renewInPlace renews a lease in the session that it is in. done is false if it is no
// longer there.
func (s *engine) renewInPlace(ctx context.Context, h *lease, l store.Lease, start clock.Instant, join bool) (done bool, err error) {
	p := h.place.Load()
	if _, err := p.Prove(ctx, start); err != nil {
		if p.Ended() {
			return false, nil
		}
		return false, err
	}
	for {
		// The session has just been proven alive by a write, so the server shows every
		// earlier change, such as a break.
		n, ok, err := p.Get(ctx, p.path())
		if err != nil || !ok {
			return false, err
		}
		now, ours := decodeRecord(n.Data)
		switch {
		case now.Broken:
			return false, errBroken
		case !ours: // somebody has replaced it
			now = p.record
		}
		// Other attempts may have written since this process did: what they have changed stays.
		rec := now
		rec.TTL = max(rec.TTL, l.TTL)
		if join && rec.Attempt != l.Attempt {
			rec.Attempt = ""
		}
		if rec.TTL == now.TTL && rec.Attempt == now.Attempt {
			if now.TTL != p.record.TTL || now.Attempt != p.record.Attempt {
				h.keep(p, now) // the answer to the write was lost, or another attempt has written
			}
			return true, nil
		}
		err = p.Do(ctx, zk.Set(p.path(), rec.encode(), n.Version))
		switch {
		case err == nil:
			h.keep(p, rec)
			return true, nil
		case errors.Is(err, zk.ErrNoNode):
			return false, nil
		case !errors.Is(err, zk.ErrBadVersion): // a lost answer to this very change leads to that, too
			return false, explain(err, p.path())
		}
	}
}

// move makes the place anew in a session of this store, with the same number, in one
// transaction. It returns false if the place has changed meanwhile.
func (s *engine) move(ctx context.Context, ss tree, f found, l store.Lease, start clock.Instant, c change) (bool, error) {
	rec, to := f.record, f.numbered
	rec.Token = tokenOf(f.record, f.czxid)
	rec.TTL = max(rec.TTL, l.TTL)
	if c.join && rec.Attempt != l.Attempt {
		rec.Attempt = ""
	}
	if c.read && !f.needsOthers() {
		to.weight = 1
		rec.Token = downgraded(rec.Token)
		rec = rec.first(to, f.czxid)
	}
	to.name = placeName(newMark(l.Owner), to.spec, to.weight) + f.digits()
	p := &place{tree: ss, dir: ss.dir(l.Name), record: rec, numbered: to}
	// Once sent, the transaction counts, even if the caller gives up.
	lasting := context.WithoutCancel(ctx)
	var moved bool
	var err error
	done := make(chan struct{})
	s.gate.Go(func() {
		defer close(done)
		if moved, err = ss.replace(lasting, p, p.dir+"/"+f.name, f.version); !moved {
			return
		}
		s.keep(l, p) // instead of the one that moved
	})
	select {
	case <-done:
		if err == nil && moved {
			_, err = ss.Prove(ctx, start)
		}
		return moved, err
	case <-ctx.Done():
		return false, ctx.Err()
	}
}
