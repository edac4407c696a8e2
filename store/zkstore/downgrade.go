package zkstore

import (
	"context"
	"errors"

	"github.com/leasehold-dev/leasehold/store"
)

// Downgrade implements driver.Engine: it replaces the writer's place by a reader's with the
// same number, in one transaction.
func (s *engine) Downgrade(ctx context.Context, r store.Lease) (store.Grant, error) {
	if err := s.require(r.Require); err != nil {
		return store.Grant{}, err
	}
	err := s.places.renew(ctx, r, s.clock.Now(), change{read: true})
	var g store.Grant
	if err == nil {
		g, err = s.places.renewed(r)
	}
	if err != nil && !errors.Is(err, store.ErrNotHeld) && !isRefusal(err) {
		err = s.failed(ctx, "downgrade", r.Name, err)
	}
	return g, err
}
