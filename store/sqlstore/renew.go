package sqlstore

import (
	"context"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/leasehold-dev/leasehold/store"
)

// Renew implements store.Store. All leases of mutexes are renewed in one transaction, and
// all others in another, unless their names are so long that they need more.
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
	for _, i := range good {
		if err := s.raise(ctx, leases[i]); err != nil {
			return all(err)
		}
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
	for n := 0; len(mutexes) > 0; mutexes = mutexes[n:] {
		n = r.fit(mutexes)
		held, err := r.call(ctx, s.calls.renew, mutexes[:n])
		if err != nil {
			for _, i := range append(mutexes, others...) {
				errs[i] = err
			}
			return errs
		}
		for k, i := range mutexes[:n] {
			switch held[k] {
			case 'f':
				others = append(others, i) // it may be that of a semaphore that was resized
			case 'w':
				s.seats.offer(ctx, leases[i])
			default:
				s.seats.renewed(leases[i])
			}
		}
	}
	for n := 0; len(others) > 0; others = others[n:] {
		n = r.fit(others)
		held, err := r.call(ctx, s.calls.renewKind, others[:n])
		if err != nil {
			for _, i := range others {
				errs[i] = err
			}
			return errs
		}
		for k, i := range others[:n] {
			if held[k] != 'f' {
				continue
			}
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

// fit returns how many of the first of some leases, at least one, can be renewed in one
// call. A MySQL server refuses requests beyond its max_allowed_packet, which is a megabyte or
// more.
func (r renewal) fit(some []int) int {
	const most = 512 << 10
	size := 0
	for n, i := range some {
		// Names are written in hexadecimal, and in MySQL so is that text again.
		size += 4*len(r.leases[i].Name) + 2*len(r.leases[i].Owner) + 2*len(" 9223372036854775807")
		if n > 0 && size > most {
			return n
		}
	}
	return len(some)
}

// call calls a procedure that renews some of the leases, and returns a letter for each.
func (r renewal) call(ctx context.Context, query statement, some []int) (held string, err error) {
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
	maybe, err := r.s.callNow(ctx, query, func(one row) error { return one.Scan(&held, &at) },
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
