package sqlstore

import (
	"cmp"
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// Release implements store.Store. The lock is handed to the first waiter in the same
// transaction. If the lease was renewed, or its request sent more than once, the
// owner gets a tombstone.
func (s *Store) Release(ctx context.Context, r store.ReleaseRequest) error {
	if err := s.gate.Enter(cmp.Or(store.CheckName(r.Name), store.CheckOwner(r.Owner))); err != nil {
		return err
	}
	defer s.gate.Leave()
	if p, ok := s.rejoined.Take(r.Lease); ok {
		p.abandon(ctx, s)
		return store.ErrNotHeld
	}
	done, maybe, err := s.release(ctx, r)
	switch {
	case err != nil:
		return s.failed(ctx, "release", r.Name, maybe, err)
	case !done:
		return store.ErrNotHeld
	}
	return nil
}

// release ends a lease.
func (s *Store) release(ctx context.Context, r store.ReleaseRequest) (done, maybe bool, err error) {
	if r.Kind.IsMutex() {
		if done, maybe, err = s.releaseMutex(ctx, r); done || err != nil {
			return done, maybe, err
		}
	}
	var at int64
	maybe, err = s.call(ctx, s.calls.releaseKind, func(r row) error { return r.Scan(&done, &at) },
		[]byte(r.Name), r.Owner, r.Attempt, r.Undo, tombstoneOf(r), r.Renewed)
	return done || maybe && err == nil, maybe, err
}

// releaseMutex ends the lease of a mutex, in the session that has its signal if there is
// one.
func (s *Store) releaseMutex(ctx context.Context, r store.ReleaseRequest) (done, maybe bool, err error) {
	l, tombstone := r.Lease, tombstoneOf(r)
	scan := func(r row) error {
		var at, session int64
		return r.Scan(&done, &at, &session)
	}
	if seat := s.seats.leave(l); seat != nil {
		maybe, err = s.callOnce(ctx, 0, seat.conn, s.calls.release, scan, []byte(l.Name), l.Owner, l.Attempt, r.Undo, tombstone, r.Renewed, seat.signal)
		if err == nil {
			s.seats.back(seat)
			return done, false, nil
		}
		s.seats.drop(seat)
		if ctx.Err() != nil {
			return false, maybe, err
		}
	} else if tombstone == 0 {
		o := s.together(ctx, step{lease: l, release: true})
		defer o.apart()
		if o.answered {
			return o.err == nil, o.maybe, o.err
		}
		maybe = o.maybe
	}
	// The session may have been lost long ago, and the lease is as it was; or a call or try
	// before the last one ended the lease.
	was := maybe
	maybe, err = s.call(ctx, s.calls.release, scan, []byte(l.Name), l.Owner, l.Attempt, r.Undo, tombstone, r.Renewed, int64(0))
	maybe = maybe || was
	return done || maybe && err == nil, maybe, err
}

// tombstoneOf returns how long the owner of a released lease is refused.
func tombstoneOf(r store.ReleaseRequest) int64 {
	if r.Renewed { // also if its request was sent more than once
		return tombstoneLife(r.Lease)
	}
	return 0
}

// undo undoes an attempt that failed but may have had an effect.
type undo struct {
	s     *Store
	lease store.Lease
	// byKind is set if the last request was to askKind.
	byKind bool
	// bury is set if a request may still be in flight: the owner is refused until the TTL
	// has passed.
	bury bool
}

// start is run in the background.
func (u undo) start(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	u.s.gate.Stay()
	go func() {
		defer u.s.gate.Leave()
		u.run(ctx)
	}()
}

// run undoes the attempt, and logs if it cannot.
func (u undo) run(ctx context.Context) {
	s, l := u.s, u.lease
	tombstone := int64(0)
	if u.bury {
		tombstone = tombstoneLife(l)
	}
	// Beyond its TTL there is nothing left to undo.
	ctx, cancel := context.WithTimeout(ctx, min(l.TTL, s.o.Timeout))
	defer cancel()
	args := []any{[]byte(l.Name), l.Owner, l.Attempt, true, tombstone, u.bury}
	ignore := func(row) error { return nil }
	for try := 0; ; try++ {
		var err error
		if u.byKind {
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

// tombstoneLife returns how long an owner is refused, in microseconds, after an attempt
// that may still be in flight: the server may notice only then that the connection is
// gone.
func tombstoneLife(l store.Lease) int64 { return micros(max(l.TTL, time.Minute)) }
