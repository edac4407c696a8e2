package sqlstore

import (
	"context"
	"database/sql"
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// Acquire implements store.Store.
func (s *Store) Acquire(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
	if err := s.gate.Enter(r.Check(s.Caps())); err != nil {
		return store.Grant{}, err
	}
	defer s.gate.Leave()
	if err := s.require(r.Require); err != nil {
		return store.Grant{}, err
	}
	s.examineAgain(ctx)
	s.sweepSometimes(ctx)
	sent := s.clock.Now()
	var a answer
	maybe, err := s.call(ctx, s.calls.ask, a.scan,
		[]byte(r.Name), r.Owner, r.Attempt, []byte(r.Meta), micros(r.TTL), int64(r.Spare), false, false, durable(r.Require), int64(0))
	if err != nil {
		if maybe {
			s.takeBack(ctx, r.Lease, true)
		}
		return store.Grant{}, s.failed(ctx, "acquire", r.Name, maybe, err)
	}
	jump := s.reading(sent, a.at)
	if !a.held() {
		return store.Grant{}, a.refusal("acquire", r.Name)
	}
	if jump != nil && a.verdict == granted {
		s.takeBack(ctx, r.Lease, false)
		return store.Grant{}, jump
	}
	return store.Grant{Token: a.token, Spare: min(a.spare, r.Spare)}, nil
}

// takeBack undoes, in the background, an attempt that failed but may have had an
// effect. If a request may still be in flight, bury is set, and the owner is refused
// until the TTL has passed.
func (s *Store) takeBack(ctx context.Context, l store.Lease, bury bool) {
	ctx = context.WithoutCancel(ctx)
	s.gate.Stay()
	go func() {
		defer s.gate.Leave()
		s.undo(ctx, l, bury)
	}()
}

// undo is takeBack in the foreground.
func (s *Store) undo(ctx context.Context, l store.Lease, bury bool) {
	tomb := int64(0)
	if bury {
		tomb = tombLife(l)
	}
	// Beyond its TTL there is nothing left to undo.
	ctx, cancel := context.WithTimeout(ctx, min(l.TTL, s.o.Timeout))
	defer cancel()
	for try := 0; ; try++ {
		_, err := s.call(ctx, s.calls.release, func(*sql.Rows) error { return nil }, []byte(l.Name), l.Owner, l.Attempt, true, tomb, bury, int64(0))
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
