package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
)

// ReserveTokens implements store.Waiter.
func (s *Store) ReserveTokens(ctx context.Context, r store.ReserveRequest) (store.Reserved, error) {
	if err := s.gate.Enter(r.Check(s.Caps())); err != nil {
		return store.Reserved{}, err
	}
	defer s.gate.Leave()
	var held, waiting bool
	var token, count sql.NullInt64
	var at int64
	var maybe bool
	var err error
	scan := func(r row) error { return r.Scan(&held, &token, &count, &waiting, &at) }
	args := []any{[]byte(r.Name), r.Owner, int64(r.Above), int64(r.Count), durable(r.Require)}
	if r.Kind.IsMutex() {
		maybe, err = s.call(ctx, s.calls.reserve, scan, args...)
	}
	if err == nil && !held {
		maybe, err = s.call(ctx, s.calls.reserveKind, scan, args...)
	}
	switch {
	case err != nil:
		return store.Reserved{}, s.failed(ctx, "reserve tokens for", r.Name, maybe, err)
	case !held:
		return store.Reserved{}, fmt.Errorf("reserve tokens for %q in %s: %w", r.Name, s.node, store.ErrNotHeld)
	}
	return store.Reserved{Token: fence.Token(token.Int64), Count: int(count.Int64), Waiting: waiting}, nil
}
