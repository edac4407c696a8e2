package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

var _ store.Breaker = (*Store)(nil)

// BreakLease implements store.Breaker. The break is on disk when it returns, as far as the
// server's settings allow. The holder learns of it by its next renewal, which is refused. To
// be notified at once (store.BreakNotifier), every process with a holder would have to keep a
// connection that only listens: by LISTEN in PostgreSQL, and by waiting for a lock of its own
// in MySQL. Behind a pooler that gives each transaction another connection, it could not listen.
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
	maybe, err := s.call(ctx, s.calls.breakLease, func(r row) error { return r.Scan(&found, &endsIn) },
		[]byte(r.Name), r.Owner, int64(r.Token), r.Now, []byte(r.Note()), micros(store.KeepBroken))
	switch {
	case err != nil:
		return 0, s.failed(ctx, "break the lease of", r.Name, maybe, err)
	case !found:
		return 0, fmt.Errorf("break the lease of %q in %s: %w", r.Name, s.node, store.ErrNotHeld)
	}
	return duration(endsIn), nil
}
