package sqlstore

import (
	"context"
	"database/sql"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/leasehold-dev/leasehold/store"
)

// Renew implements store.Store. All leases are renewed in one transaction.
func (s *Store) Renew(ctx context.Context, leases []store.Lease) []error {
	errs := make([]error, len(leases))
	all := func(err error) []error {
		for i := range errs {
			if errs[i] == nil {
				errs[i] = err
			}
		}
		return errs
	}
	caps := s.Caps()
	var good []int
	for i, l := range leases {
		if errs[i] = l.Check(caps); errs[i] == nil {
			good = append(good, i)
		}
	}
	if err := s.gate.Enter(nil); err != nil {
		return all(err)
	}
	defer s.gate.Leave()
	if len(good) == 0 {
		return errs
	}
	// All sessions lock rows in the same order, so they do not wait for each other.
	slices.SortFunc(good, func(a, b int) int { return strings.Compare(leases[a].Name, leases[b].Name) })
	var names, owners, ttls []string
	onDisk := false
	for _, i := range good {
		l := leases[i]
		names = append(names, hex.EncodeToString([]byte(l.Name)))
		owners = append(owners, l.Owner)
		ttls = append(ttls, strconv.FormatInt(micros(l.TTL), 10))
		onDisk = onDisk || durable(l.Require)
	}
	var held string
	var at int64
	sent := s.clock.Now()
	maybe, err := s.callNow(ctx, s.calls.renew, func(r *sql.Rows) error { return r.Scan(&held, &at) },
		strings.Join(names, " "), strings.Join(owners, " "), strings.Join(ttls, " "), onDisk)
	if err != nil {
		name := ""
		if len(leases) == 1 {
			name = leases[0].Name
		}
		return all(s.failed(ctx, "renew", name, maybe, err))
	}
	_ = s.reading(sent, at) // a lease that is still there counts
	for n, i := range good {
		switch held[n] {
		case 'f':
			errs[i] = store.ErrNotHeld
			if seat := s.seats.leave(leases[i]); seat != nil {
				s.seats.drop(seat)
			}
		case 'w':
			s.seats.offer(ctx, leases[i])
		default:
			s.seats.renewed(leases[i])
		}
	}
	return errs
}
