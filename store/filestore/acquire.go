package filestore

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
)

// Acquire implements store.Store.
func (s *Store) Acquire(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
	caps := s.Caps()
	if err := s.gate.Enter(cmp.Or(r.Check(caps), r.CheckClass(caps))); err != nil {
		return store.Grant{}, err
	}
	defer s.gate.Leave()
	var ans rule.Answer
	maybe, err := s.ask(ctx, func(t *step) (err error) {
		ans, err = t.admit(r.Lease, 0, false, waiter{})
		return err
	})
	if maybe {
		s.takeBack(ctx, r.Lease, true)
	}
	if err != nil {
		return store.Grant{}, s.failed(ctx, "acquire", r.Name, maybe, err)
	}
	if ans.Verdict == rule.Granted {
		s.listen()
		return store.Grant{Token: ans.Token, Slot: ans.Slot}, nil
	}
	return store.Grant{}, refusal("acquire", r.Lease, ans)
}

// decodeBlocker returns the holder or the waiter because of which a request was refused.
func decodeBlocker(b rule.Blocker) store.Holder {
	h := store.DecodeHolder(b.Owner, b.Meta)
	h.Waiting = b.Waiting
	return h
}

// refusal returns the error for a verdict other than Granted.
func refusal(op string, r store.Lease, ans rule.Answer) error {
	name := r.Name
	holder := decodeBlocker(ans.Blocker)
	switch ans.Verdict {
	case rule.Busy:
		return &store.BusyError{Name: name, Holder: holder, ExpiresIn: ans.ExpiresIn, Position: ans.Position}
	case rule.Mismatch:
		if inUse := store.Kind(ans.Spec); inUse != r.Kind.Normal() {
			return &store.KindError{Name: name, Asked: r.Kind, InUse: inUse, Holder: holder}
		}
		return store.HeavierError(op, r)
	case rule.Buried:
		return fmt.Errorf("%s %q: %w: this attempt was given up; a new attempt needs a new owner", op, name, store.ErrNotHeld)
	}
	return fmt.Errorf("%s %q: unexpected verdict: %v", op, name, ans.Verdict)
}

// admit asks the rule to admit r, and takes a place in the queue if wait is
// positive. Unless barge is set, a lock that became free by expiry is first
// handed to its waiters. Only a new grant draws tokens, so the rule is first
// asked whether there will be one. me says how to notify the waiter; the zero
// value means that it polls.
func (t *step) admit(r store.Lease, wait time.Duration, barge bool, me waiter) (rule.Answer, error) {
	before, err := t.read(r.Name)
	if err != nil {
		return rule.Answer{}, err
	}
	changed := false
	if !barge {
		if before, changed, err = t.advance(r.Name, before); err != nil {
			return rule.Answer{}, err
		}
	}
	ask := t.askOf(r, wait, barge)
	after, ans := rule.Admit(before.Record, ask, t.now)
	switch {
	case ans.Verdict == rule.Granted && !ans.Again:
		if ask.Floor, err = t.draw(1); err != nil {
			return rule.Answer{}, err
		}
		after, ans = rule.Admit(before.Record, ask, t.now)
	case ans.Verdict == rule.Granted, ans.Verdict == rule.Busy && wait > 0, changed:
	default:
		return ans, nil // nothing to write
	}
	next := before.with(after)
	if ans.Position > 0 {
		next = next.waiting(r.Owner, me)
	}
	return ans, t.write(r.Name, next)
}

// askOf is the request of r for the rule.
func (t *step) askOf(r store.Lease, wait time.Duration, barge bool) rule.Ask {
	return rule.Ask{
		Spec:    rule.Spec(r.Kind.Normal()),
		Owner:   r.Owner,
		Attempt: r.Attempt,
		Meta:    r.Meta,
		Weight:  r.Weight,
		TTL:     t.lasting(r.TTL),
		// Of other kinds there may be room for the owner, and waiters ahead of it.
		Fair: !barge && (wait > 0 || !r.Kind.IsMutex()),
		Wait: wait,
	}
}

// takeBack undoes, in the background, an attempt that failed but may have taken
// effect. If bury is set, the owner is also refused for a while, in case a commit
// without an answer takes effect later.
func (s *Store) takeBack(ctx context.Context, r store.Lease, bury bool) {
	ctx = context.WithoutCancel(ctx)
	s.gate.Stay()
	go func() {
		defer s.gate.Leave()
		_, err := s.write(ctx, func(t *step) error {
			tombstone := time.Duration(0)
			if bury {
				tombstone = t.lasting(r.TTL)
			}
			_, err := t.release(store.ReleaseRequest{Lease: r, Undo: true}, tombstone, nil)
			return err
		})
		if err != nil {
			s.log.Warn("cannot undo a failed acquire; the lock may stay taken until its TTL expires",
				"lock", r.Name, "owner", r.Owner, "ttl", r.TTL, "err", s.failed(ctx, "release", r.Name, false, err))
		}
	}()
}
