package sqlstore

import (
	"context"
	"fmt"

	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
)

// Acquire implements store.Store.
func (s *Store) Acquire(ctx context.Context, r store.Request) (store.Grant, error) {
	if err := r.Check(s.maxTTL); err != nil {
		return store.Grant{}, err
	}
	if err := s.gate.enter(); err != nil {
		return store.Grant{}, err
	}
	defer s.gate.leave()
	var ans rule.Answer
	maybe, err := s.write(ctx, func(t *step) (err error) {
		ans, err = t.admit(r)
		return err
	})
	if maybe {
		s.takeBack(ctx, r)
	}
	if err != nil {
		return store.Grant{}, s.failed(ctx, "acquire", r.Name, maybe, err)
	}
	holder := store.DecodeHolder(ans.Blocker.Owner, ans.Blocker.Meta)
	switch ans.Verdict {
	case rule.Granted:
		return store.Grant{Token: ans.Token}, nil
	case rule.Busy:
		return store.Grant{}, &store.BusyError{Name: r.Name, Holder: holder, ExpiresIn: ans.ExpiresIn}
	case rule.Mismatch:
		return store.Grant{}, fmt.Errorf("acquire %q: %w, by %s", r.Name, store.ErrKindMismatch, holder)
	case rule.Buried:
		return store.Grant{}, fmt.Errorf("acquire %q: %w: its attempt was given up, and a new one needs a new owner", r.Name, store.ErrNotHeld)
	}
	return store.Grant{}, fmt.Errorf("acquire %q: unexpected verdict: %v", r.Name, ans.Verdict)
}

// admit asks the rule. Only a new grant draws a token, so it is asked first
// whether there will be one.
func (t *step) admit(r store.Request) (rule.Answer, error) {
	before, err := t.read(r.Name)
	if err != nil {
		return rule.Answer{}, err
	}
	ask := rule.Ask{Spec: rule.Mutex, Owner: r.Owner, Meta: r.Meta, TTL: t.lasting(r.TTL)}
	after, ans := rule.Admit(before, ask, t.now)
	if ans.Verdict != rule.Granted {
		return ans, nil // and nothing is written
	}
	if !ans.Again {
		if ask.Floor, err = t.draw(); err != nil {
			return rule.Answer{}, err
		}
		after, ans = rule.Admit(before, ask, t.now)
	}
	return ans, t.write(r.Name, after)
}

// takeBack ends an attempt that failed and may have taken effect all the same,
// in the background. Its owner is kept out for a while, in case the commit that
// nobody had an answer to is still on its way.
func (s *Store) takeBack(ctx context.Context, r store.Request) {
	ctx = context.WithoutCancel(ctx)
	s.gate.stay()
	go func() {
		defer s.gate.leave()
		_, err := s.write(ctx, func(t *step) error {
			_, err := t.release(r, t.lasting(r.TTL))
			return err
		})
		if err != nil {
			s.log.Warn("clean-up after a failed acquire did not succeed: the lock may stay taken for its TTL",
				"lock", r.Name, "owner", r.Owner, "ttl", r.TTL, "err", s.failed(ctx, "release", r.Name, false, err))
		}
	}()
}
