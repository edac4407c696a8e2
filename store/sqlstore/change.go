package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
)

var _ store.Changer = (*Store)(nil)

// Downgrade implements store.Changer. The lock is handed to the readers that wait in the
// same transaction.
func (s *Store) Downgrade(ctx context.Context, r store.Lease) (store.Grant, error) {
	if err := r.CheckDowngrade(s.Caps()); err != nil {
		return store.Grant{}, err
	}
	if err := s.gate.Enter(nil); err != nil {
		return store.Grant{}, err
	}
	defer s.gate.Leave()
	if err := s.raise(ctx, r); err != nil {
		return store.Grant{}, err
	}
	var held bool
	var token, slot sql.NullInt64
	var at int64
	sent := s.clock.Now()
	maybe, err := s.call(ctx, s.calls.downgrade, func(r row) error { return r.Scan(&held, &token, &slot, &at) },
		[]byte(r.Name), r.Owner, micros(r.TTL), durable(r.Require))
	switch {
	case err != nil:
		return store.Grant{}, s.failed(ctx, "downgrade", r.Name, maybe, err)
	case !held:
		return store.Grant{}, fmt.Errorf("downgrade %q in %s: %w", r.Name, s.node, store.ErrNotHeld)
	}
	_ = s.reading(sent, at) // a lease that is still there counts
	return store.Grant{Token: fence.Token(token.Int64), Slot: slot.Int64}, nil
}

// Resize implements store.Changer. It is on disk when it returns.
func (s *Store) Resize(ctx context.Context, name string, from, to store.Kind) error {
	if err := store.CheckResize(name, from, to, s.Caps()); err != nil {
		return err
	}
	if err := s.gate.Enter(nil); err != nil {
		return err
	}
	defer s.gate.Leave()
	var a answer
	maybe, err := s.call(ctx, s.calls.resize, a.scanKind, []byte(name), from.Normal().Limit, to.Normal().Limit)
	switch {
	case err != nil:
		return s.failed(ctx, "resize", name, maybe, err)
	case a.verdict == mismatch:
		return a.refusal("resize", store.Lease{Name: name, Kind: from})
	}
	return nil
}
