package memstore

import (
	"context"
	"fmt"

	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
)

// Downgrade implements driver.Engine. Its errors match store.ErrNotHeld,
// store.ErrInvalid, store.ErrClosed or ctx.Err().
func (s *engine) Downgrade(ctx context.Context, r store.Lease) (store.Grant, error) {
	if err := s.enter(ctx); err != nil {
		return store.Grant{}, err
	}
	defer s.mu.Unlock()
	now := s.clock.Now()
	rec, ans := rule.Downgrade(s.alive(r.Name, now), r.Owner, r.TTL, s.forgotten+1, now)
	s.keep(r.Name, rec, now)
	if ans.Verdict != rule.Granted {
		return store.Grant{}, fmt.Errorf("downgrade %q: %w", r.Name, store.ErrNotHeld)
	}
	return store.Grant{Token: ans.Token, Slot: ans.Slot}, nil
}

// Resize implements driver.Engine. Its errors match store.ErrKindMismatch,
// store.ErrInvalid, store.ErrClosed or ctx.Err().
func (s *engine) Resize(ctx context.Context, name string, from, to store.Kind) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	now := s.clock.Now()
	rec, ans := rule.Resize(s.settled(name, now), rule.Spec(from.Normal()), rule.Spec(to.Normal()), now)
	s.keep(name, rec, now)
	if ans.Verdict != rule.Done {
		return refusal("resize", store.Lease{Name: name, Kind: from}, ans)
	}
	return nil
}
