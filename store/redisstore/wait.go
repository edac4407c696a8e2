package redisstore

import (
	"context"

	"github.com/leasehold-dev/leasehold/store"
)

// Wait implements driver.Engine. Each server keeps its own queue of waiters, and hands the
// lock over in the step that releases it. If a server cannot push, because the user lacks
// the permission or a proxy is in between, the client polls.
func (s *engine) Wait(ctx context.Context, r store.WaitRequest, reason func(error)) (store.Grant, error) {
	if err := s.ready(ctx, r.Lease); err != nil {
		s.driver.Abandon(r.Owner)
		return store.Grant{}, err
	}
	s.waiting.Add(1)
	defer func() {
		s.waiting.Add(-1)
		s.progress.ring()
	}()
	return s.driver.Wait(ctx, r, reason)
}

// ReleaseAndRejoin implements driver.Engine. Each server does both in one step.
func (s *engine) ReleaseAndRejoin(ctx context.Context, r store.ReleaseRequest, next store.WaitRequest) (queued bool, err error) {
	if err := s.ready(ctx, next.Lease); err != nil {
		return false, err
	}
	if !r.Kind.IsMutex() || !next.Kind.IsMutex() { // nobody need wait for the release
		return false, s.driver.Release(ctx, r)
	}
	return s.driver.ReleaseAndRejoin(ctx, r, next)
}
