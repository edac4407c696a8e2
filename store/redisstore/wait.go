package redisstore

import (
	"context"
	"fmt"

	"github.com/leasehold-dev/leasehold/store"
)

var _ store.Returner = (*Store)(nil)

// Wait implements store.Waiter. Each server keeps its own queue of waiters, and hands the
// lock over in the step that releases it; see hand.lua. Where a server cannot
// push, because the user lacks the permission or a proxy is in between, the client polls.
func (s *Store) Wait(ctx context.Context, r store.Request, reason func(error)) (store.Grant, error) {
	if err := s.ready(ctx, r); err != nil {
		s.keeper.Abandon(r.Owner)
		return store.Grant{}, err
	}
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	return s.keeper.Wait(ctx, r, reason)
}

// Draw implements store.Waiter.
func (s *Store) Draw(ctx context.Context, r store.Request) (store.Drawn, error) {
	if err := s.check(ctx, r); err != nil {
		return store.Drawn{}, err
	}
	return s.keeper.ReserveTokens(ctx, r)
}

// Return implements store.Returner. Each server does both in one step; see
// return.lua.
func (s *Store) Return(ctx context.Context, r, next store.Request) (standing bool, err error) {
	if err := s.check(ctx, r); err != nil {
		return false, err
	}
	if err := s.ready(ctx, next); err != nil {
		return false, err
	}
	if r.Name != next.Name || r.Owner == next.Owner {
		return false, fmt.Errorf("%w: return of lock %q: the place has to be for the same lock, and of another owner", store.ErrInvalid, r.Name)
	}
	return s.keeper.ReleaseAndRejoin(ctx, r, next)
}
