package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

var _ store.Breaker = (*Store)(nil)

// BreakLease implements store.Breaker. The break is on disk when it returns, as far as the
// server's settings allow.
func (s *Store) BreakLease(ctx context.Context, r store.BreakRequest) (left time.Duration, err error) {
	if err := r.Check(); err != nil {
		return 0, err
	}
	if err := s.gate.Enter(nil); err != nil {
		return 0, err
	}
	defer s.gate.Leave()
	var found bool
	var endsIn int64
	maybe, err := s.call(ctx, s.calls.breakLease, func(r *sql.Rows) error { return r.Scan(&found, &endsIn) },
		[]byte(r.Name), r.Owner, int64(r.Token), r.Now, []byte(r.Note()), micros(store.KeepBroken))
	switch {
	case err != nil:
		return 0, s.failed(ctx, "break the lease of", r.Name, maybe, err)
	case !found:
		return 0, fmt.Errorf("break the lease of %q in %s: %w", r.Name, s.node, store.ErrNotHeld)
	}
	return duration(endsIn), nil
}
