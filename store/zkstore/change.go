package zkstore

import (
	"context"
	"errors"

	"github.com/leasehold-dev/leasehold/store"
)

var _ store.Changer = (*Store)(nil)

// Downgrade implements store.Changer: it replaces the writer's place by a reader's with the
// same number, in one transaction.
func (s *Store) Downgrade(ctx context.Context, r store.Lease) (store.Grant, error) {
	if err := s.gate.Enter(r.CheckDowngrade(s.Caps())); err != nil {
		return store.Grant{}, err
	}
	defer s.gate.Leave()
	if err := s.require(r.Require); err != nil {
		return store.Grant{}, err
	}
	ctx, cancel := s.limited(ctx)
	defer cancel()
	g, err := s.downgrade(ctx, r)
	if err != nil && !errors.Is(err, store.ErrNotHeld) && !isRefusal(err) {
		err = s.failed(ctx, "downgrade", r.Name, err)
	}
	return g, err
}

func (s *Store) downgrade(ctx context.Context, r store.Lease) (store.Grant, error) {
	start := s.clock.Now()
	if err := ctx.Err(); err != nil {
		return store.Grant{}, err
	}
	if err := s.renew(ctx, r, start, change{read: true}); err != nil {
		return store.Grant{}, err
	}
	return s.renewed(r, 0)
}
