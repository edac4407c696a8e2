package zkstore

import (
	"context"
	"errors"
	"sync"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/zkstore/internal/session"
)

// Renew implements driver.Engine. All leases in one session are renewed by one write, after
// which the server is asked for each of them.
func (s *engine) Renew(ctx context.Context, leases []store.Lease) []error {
	errs := make([]error, len(leases))
	start := s.clock.Now()
	s.places.leases.prove(ctx, leases, start)
	each(len(leases), func(i int) {
		err := s.places.renew(ctx, leases[i], start, change{})
		if err != nil && !errors.Is(err, store.ErrNotHeld) {
			err = s.failed(ctx, "renew", leases[i].Name, err)
		}
		errs[i] = err
	})
	return errs
}

// prove proves once for each session of these leases that it lives. If it fails, the
// renewal of each lease tries again, and says why.
func (t *leases) prove(ctx context.Context, of []store.Lease, start clock.Instant) {
	sessions := make(map[*session.Session]bool)
	var wg sync.WaitGroup
	for _, l := range of {
		h := t.get(leaseKey{l.Name, l.Owner})
		if h == nil || sessions[h.place.Load().Session] {
			continue
		}
		ss := h.place.Load().Session
		sessions[ss] = true
		wg.Go(func() { _, _ = ss.Prove(ctx, start) })
	}
	wg.Wait()
}
