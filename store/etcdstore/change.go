package etcdstore

import (
	"context"
	"fmt"

	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
)

// Downgrade implements driver.Engine. The transaction that makes the writer a reader tells
// the readers behind it.
func (s *engine) Downgrade(ctx context.Context, r store.Lease) (store.Grant, error) {
	if err := s.raise(ctx, "downgrade", r); err != nil {
		return store.Grant{}, err
	}
	e, err := s.downgrade(ctx, r)
	if err == nil {
		r.Weight = 1
		err = s.renew(ctx, []store.Lease{r})[0]
	}
	if err == store.ErrNotHeld {
		return store.Grant{}, fmt.Errorf("downgrade %q in etcd at %s: %w", r.Name, s.members, err)
	}
	if err != nil {
		return store.Grant{}, s.refused(ctx, "downgrade", r.Name, true, err)
	}
	return s.admitted(e), nil
}

// downgrade returns the place of the owner, which is a reader's then.
func (s *engine) downgrade(ctx context.Context, r store.Lease) (entry, error) {
	for try := 0; ; try++ {
		v, err := s.read(ctx, reading{name: r.Name})
		if err != nil {
			return entry{}, err
		}
		e, ok := v.held(r.Owner)
		if !ok || e.Broken {
			return entry{}, store.ErrNotHeld
		}
		if e.spec() != rule.Spec(r.Kind) {
			return entry{}, otherKind(r, e)
		}
		if e.sharesToken() {
			return e, nil
		}
		e.Weight, e.Token = 1, 0
		after := *v
		i := v.index(e.key, e.create)
		after.places = append(append(v.places[:i:i], e), v.places[i+1:]...)
		t := txn{
			ifs:  []condition{created(e.key, e.create), modified(e.key, e.mod)},
			then: []operation{replace(e.key, encode(e.record))},
		}
		if try < patient {
			p := s.layout.admitNext(&after, r.Name, -1)
			t.ifs, t.then = append(t.ifs, p.ifs...), append(t.then, p.then...)
		}
		got, _, err := s.commit(ctx, t)
		switch {
		case isGone(err) && try < patient:
			try = patient // one of those to tell has just gone
		case err != nil:
			return entry{}, err
		case got.Succeeded:
			e.mod = got.Header.Revision
			if try >= patient {
				s.wake(r.Name)
			}
			return e, nil
		}
	}
}

// Resize implements driver.Engine, in one transaction. Leases and places that it cannot
// change in one, because there are more than a hundred, are an error that matches
// store.ErrUnsupported.
func (s *engine) Resize(ctx context.Context, name string, from, to store.Kind) error {
	was, is := rule.Spec(from.Normal()), rule.Spec(to.Normal())
	for quiet := false; ; {
		v, err := s.read(ctx, reading{name: name})
		if err != nil {
			return s.refused(ctx, "resize", name, true, err)
		}
		if len(v.places) == 0 || v.places[0].spec() == is {
			return nil
		}
		first := v.places[0]
		if first.spec() != was {
			return otherKind(store.Lease{Name: name, Kind: from}, first)
		}
		t, err := s.resize(v, name, is, quiet)
		if err != nil {
			return err
		}
		r, _, err := s.commit(ctx, t)
		switch {
		case isGone(err) && !quiet:
			quiet = true // a place to tell has just gone
		case err != nil:
			return s.refused(ctx, "resize", name, true, err)
		case r.Succeeded:
			return nil
		}
	}
}

// resize is the transaction that gives the leases of v the new kind, and removes the
// places of waiters. Leases keep their tokens and slots.
func (s *engine) resize(v *view, name string, is rule.Spec, quiet bool) (txn, error) {
	t := txn{ifs: []condition{unchanged(v.prefix, v.revision), unchanged(s.layout.slots(name), v.revision)}}
	for _, e := range v.places {
		switch {
		case e.native:
			return t, fmt.Errorf("%w: resize %q: %s belongs to another kind of client", store.ErrUnsupported, name, e.Owner)
		case e.slot == nil: // it waits, or has not entered yet and so has no token
			t.then = append(t.then, remove(e.key))
			if e.Process != "" && !quiet {
				t.then = append(t.then, s.layout.notify(v.prefix, e, message{Create: e.create, Resized: true}))
			}
			continue
		}
		number := e.slot.number
		e.Token = e.token(s.floor)
		e.Limit, e.Shared, e.Weight, e.Kept = is.Limit, false, max(e.Weight, 1), &number
		t.ifs = append(t.ifs, created(e.key, e.create))
		t.then = append(t.then, replace(e.key, encode(e.record)))
	}
	if max(len(t.ifs), len(t.then)) > mostOps {
		return t, fmt.Errorf("%w: resize %q: it has %d leases and places, and etcd changes at most %d keys at once: try again when fewer hold it or wait for it", store.ErrUnsupported, name, len(v.places), mostOps)
	}
	return t, nil
}
