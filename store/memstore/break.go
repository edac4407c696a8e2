package memstore

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
)

// NotifyBroken implements driver.Engine.
func (s *engine) NotifyBroken(f func(owner string)) (stop func()) { return s.broken.Add(f) }

// BreakLease implements driver.Engine.
func (s *engine) BreakLease(ctx context.Context, r store.BreakRequest) (left time.Duration, err error) {
	if left, err = s.breakLease(ctx, r); err == nil {
		s.broken.Tell(r.Owner)
	}
	return left, err
}

func (s *engine) breakLease(ctx context.Context, r store.BreakRequest) (left time.Duration, err error) {
	if err := s.enter(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	now := s.clock.Now()
	rec, ans := rule.BreakLease(s.alive(r.Name, now), rule.Break{Owner: r.Owner, Token: r.Token, Now: r.Now, Note: r.Note(), Keep: store.KeepBroken}, now)
	s.keep(r.Name, rec, now)
	if ans.Verdict != rule.Done {
		return 0, store.ErrNotHeld
	}
	return ans.ExpiresIn, nil
}
