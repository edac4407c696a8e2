package sqlstore

import (
	"context"
	"math/rand/v2"

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
	if err := s.raise(ctx, r.Lease); err != nil {
		return store.Grant{}, err
	}
	s.examineAgain(ctx)
	s.sweepSometimes(ctx)
	q := request{Lease: r.Lease, spare: r.Spare, durable: durable(r.Require)}
	sent := s.clock.Now()
	o := s.together(ctx, step{lease: r.Lease, spare: r.Spare, durable: q.durable})
	defer o.apart()
	a, maybe, err := o.answer, o.maybe, o.err
	byKind := false
	if !o.answered {
		byKind, err = q.ask(func(st statement, scan scanner, args []any) (again bool, err error) {
			a, sent = answer{}, s.clock.Now()
			unsure, err := s.call(ctx, st, func(r row) error { return scan(&a, r) }, args...)
			maybe = maybe || unsure
			return a.verdict == otherKind || a.verdict == nowMutex, err
		}, s.calls)
	}
	if err != nil {
		if maybe {
			undo{s, r.Lease, byKind, true}.start(ctx)
		}
		return store.Grant{}, s.failed(ctx, "acquire", r.Name, maybe, err)
	}
	jump := s.reading(sent, a.at)
	if !a.held() {
		if maybe && a.verdict == busy { // a try before the last one may yet arrive
			undo{s, r.Lease, byKind, true}.start(ctx)
		}
		return store.Grant{}, a.refusal("acquire", r.Lease)
	}
	if jump != nil && a.verdict == granted {
		undo{s, r.Lease, byKind, maybe}.start(ctx)
		return store.Grant{}, jump
	}
	return store.Grant{Token: a.token, Spare: min(a.spare, r.Spare), Slot: a.slot, Repeated: maybe}, nil
}

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
		if _, err := s.call(ctx, s.calls.sweep, func(row) error { return nil }, int64(most)); err != nil {
			s.o.Logger.Warn("cannot forget unused locks", "err", s.failed(ctx, "sweep", "", false, err))
		}
	}()
}
