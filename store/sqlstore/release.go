package sqlstore

import (
	"cmp"
	"context"
	"database/sql"

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
	if p := s.rejoined.take(r.Lease); p != nil {
		s.abandon(ctx, p)
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

// release ends a lease, in the session that has its signal if there is one.
func (s *Store) release(ctx context.Context, r store.ReleaseRequest) (done, maybe bool, err error) {
	l, tomb := r.Lease, tombOf(r)
	scan := func(r *sql.Rows) error {
		var at, session int64
		return r.Scan(&done, &at, &session)
	}
	if seat := s.seats.leave(l); seat != nil {
		maybe, err = s.callOnce(ctx, seat.conn, s.calls.release, scan, []byte(l.Name), l.Owner, l.Attempt, r.Undo, tomb, r.Renewed, seat.signal)
		if err == nil {
			s.seats.back(seat)
			return done, false, nil
		}
		s.seats.drop(seat)
		if ctx.Err() != nil {
			return false, maybe, err
		}
	}
	// The session may have been lost long ago, and the lease is as it was; or the
	// call before this one ended the lease.
	was := maybe
	maybe, err = s.call(ctx, s.calls.release, scan, []byte(l.Name), l.Owner, l.Attempt, r.Undo, tomb, r.Renewed, int64(0))
	return done || was && err == nil, maybe, err
}

// tombOf returns how long the owner of a released lease is refused.
func tombOf(r store.ReleaseRequest) int64 {
	if r.Renewed { // also if its request was sent more than once
		return tombLife(r.Lease)
	}
	return 0
}

// callOnce is call on one connection, without repetition.
func (s *Store) callOnce(ctx context.Context, conn *sql.Conn, query statement, each func(*sql.Rows) error, args ...any) (maybe bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.o.Timeout, errLimit)
	defer cancel()
	maybe, err = s.callOn(ctx, conn, query, each, args...)
	return maybe, ended(ctx, err)
}
