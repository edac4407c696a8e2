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

// Renew implements store.Store. All leases of mutexes are renewed in one transaction, and
// all others in another.
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
	var mutexes, others []int
	for _, i := range good {
		if leases[i].Kind.IsMutex() {
			mutexes = append(mutexes, i)
		} else {
			others = append(others, i)
		}
	}
	r := renewal{s, leases}
	held, err := r.call(ctx, s.calls.renew, mutexes)
	if err != nil {
		return all(err)
	}
	for n, i := range mutexes {
		switch held[n] {
		case 'f':
			others = append(others, i) // it may be that of a semaphore that was resized
		case 'w':
			s.seats.offer(ctx, leases[i])
		default:
			s.seats.renewed(leases[i])
		}
	}
	held, err = r.call(ctx, s.calls.renewKind, others)
	for n, i := range others {
		switch {
		case err != nil:
			errs[i] = err
		case held[n] == 'f':
			errs[i] = store.ErrNotHeld
			if seat := s.seats.leave(leases[i]); seat != nil {
				s.seats.drop(seat)
			}
		}
	}
	return errs
}

// renewal renews leases.
type renewal struct {
	s      *Store
	leases []store.Lease
}

// call calls a procedure that renews some of the leases, and returns a letter for each.
func (r renewal) call(ctx context.Context, query statement, some []int) (held string, err error) {
	if len(some) == 0 {
		return "", nil
	}
	var names, owners, ttls []string
	onDisk := false
	for _, i := range some {
		l := r.leases[i]
		names = append(names, hex.EncodeToString([]byte(l.Name)))
		owners = append(owners, l.Owner)
		ttls = append(ttls, strconv.FormatInt(micros(l.TTL), 10))
		onDisk = onDisk || durable(l.Require)
	}
	var at int64
	sent := r.s.clock.Now()
	maybe, err := r.s.callNow(ctx, query, func(rows *sql.Rows) error { return rows.Scan(&held, &at) },
		strings.Join(names, " "), strings.Join(owners, " "), strings.Join(ttls, " "), onDisk)
	if err != nil {
		name := ""
		if len(r.leases) == 1 {
			name = r.leases[0].Name
		}
		return "", r.s.failed(ctx, "renew", name, maybe, err)
	}
	_ = r.s.reading(sent, at) // a lease that is still there counts
	return held, nil
}
