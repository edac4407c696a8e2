package sqlstore

import (
	"context"
	"database/sql"
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// Acquire implements store.Store.
func (s *Store) Acquire(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
	if err := r.Check(s.Caps()); err != nil {
		return store.Grant{}, err
	}
	if err := s.gate.Enter(); err != nil {
		return store.Grant{}, err
	}
	defer s.gate.Leave()
	if err := s.require(r.Require); err != nil {
		return store.Grant{}, err
	}
	s.examineAgain(ctx)
	s.sweepSometimes(ctx)
	var sent clock.Instant
	var a answer
	var maybe bool
	q := request{Lease: r.Lease, spare: r.Spare}
	byKind, err := q.ask(func(st statement, scan scanner, args []any) (again bool, err error) {
		a, sent = answer{}, s.clock.Now()
		maybe, err = s.call(ctx, st, func(rows *sql.Rows) error { return scan(&a, rows) }, args...)
		return a.verdict == otherKind || a.verdict == nowMutex, err
	}, s.calls)
	if err != nil {
		if maybe {
			s.takeBack(ctx, r.Lease, byKind, true)
		}
		return store.Grant{}, s.failed(ctx, "acquire", r.Name, maybe, err)
	}
	jump := s.reading(sent, a.at)
	if !a.held() {
		return store.Grant{}, a.refusal("acquire", r.Lease)
	}
	if jump != nil && a.verdict == granted {
		s.takeBack(ctx, r.Lease, byKind, false)
		return store.Grant{}, jump
	}
	return store.Grant{Token: a.token, Spare: min(a.spare, r.Spare), Slot: a.slot}, nil
}

// takeBack undoes, in the background, an attempt that failed but may have had an
// effect. If a request may still be in flight, bury is set, and the owner is refused
// until the TTL has passed. byKind is set if the last request was to askKind.
func (s *Store) takeBack(ctx context.Context, l store.Lease, byKind, bury bool) {
	ctx = context.WithoutCancel(ctx)
	s.gate.Stay()
	go func() {
		defer s.gate.Leave()
		s.undo(ctx, l, byKind, bury)
	}()
}

// undo is takeBack in the foreground.
func (s *Store) undo(ctx context.Context, l store.Lease, byKind, bury bool) {
	tomb := int64(0)
	if bury {
		tomb = tombLife(l)
	}
	// Beyond its TTL there is nothing left to undo.
	ctx, cancel := context.WithTimeout(ctx, min(l.TTL, s.o.Timeout))
	defer cancel()
	args := []any{[]byte(l.Name), l.Owner, l.Attempt, true, tomb, bury}
	ignore := func(*sql.Rows) error { return nil }
	for try := 0; ; try++ {
		var err error
		if byKind {
			_, err = s.call(ctx, s.calls.releaseKind, ignore, args...)
		}
		if err == nil && l.Kind.IsMutex() { // also if the lock has become a mutex since then
			_, err = s.call(ctx, s.calls.release, ignore, append(args, int64(0))...)
		}
		if err == nil {
			return
		}
		if s.gate.Closed() || !pause(ctx, try+6) {
			s.o.Logger.Warn("cannot undo a failed acquire; the lock may stay taken until its TTL has passed",
				"lock", l.Name, "owner", l.Owner, "ttl", l.TTL, "err", s.failed(context.Background(), "release", l.Name, false, err))
			return
		}
	}
}

// tombLife returns how long an owner is refused, in microseconds, after an attempt
// that may still be in flight: the server may notice only then that the connection is
// gone.
func tombLife(l store.Lease) int64 { return micros(max(l.TTL, time.Minute)) }

// sweepSometimes forgets unused locks, in the background, once in so many acquires on
// average. Chance decides, since a process may make only one acquire.
func (s *Store) sweepSometimes(ctx context.Context) {
	const every, most = 4096, 10_000 // a sweep reads the whole table
	if rand.N(every) != 0 {
		return
	}
	ctx = context.WithoutCancel(ctx)
	s.gate.Stay()
	go func() {
		defer s.gate.Leave()
		if _, err := s.call(ctx, s.calls.sweep, func(*sql.Rows) error { return nil }, int64(most)); err != nil {
			s.o.Logger.Warn("cannot forget unused locks", "err", s.failed(ctx, "sweep", "", false, err))
		}
	}()
}
