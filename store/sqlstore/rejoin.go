package sqlstore

import (
	"context"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// reservedPlace is a place that was made with a release and that no Wait has claimed.
type reservedPlace struct {
	lease store.Lease
	seat  *seat // nil: it has none
	sent  clock.Instant
}

// ReleaseAndRejoin implements store.Rejoiner, in one transaction. It takes a place only for
// a mutex.
func (s *Store) ReleaseAndRejoin(ctx context.Context, r store.ReleaseRequest, next store.WaitRequest) (queued bool, err error) {
	if err := s.gate.Enter(store.CheckRejoin(r, next, s.Caps())); err != nil {
		return false, err
	}
	defer s.gate.Leave()
	if err := s.require(next.Require); err != nil {
		return false, err
	}
	if !r.Kind.IsMutex() || !next.Kind.IsMutex() || s.raise(ctx, next.Lease) != nil {
		done, maybe, err := s.release(ctx, r)
		switch {
		case err != nil:
			return false, s.failed(ctx, "release", r.Name, maybe, err)
		case !done:
			return false, store.ErrNotHeld
		}
		return false, nil
	}
	done, queued, maybe, err := s.rejoin(ctx, r, next)
	if err != nil {
		if maybe {
			undo{s, next.Lease, false, true}.start(ctx)
		}
		if ctx.Err() == nil {
			// As in release: the session may have been lost long ago.
			again, unknown, second := s.release(ctx, r)
			if second == nil && (again || maybe) {
				return false, nil
			}
			maybe, err = maybe || unknown, second
		}
		if err == nil {
			return false, store.ErrNotHeld
		}
		return false, s.failed(ctx, "release", r.Name, maybe, err)
	}
	if !done {
		was := maybe // done by a try before the last one
		if was {
			undo{s, next.Lease, false, true}.start(ctx)
		}
		// It may be the lease of a semaphore of one permit that was resized.
		if done, maybe, err = s.release(ctx, r); err != nil {
			return false, s.failed(ctx, "release", r.Name, maybe, err)
		}
		done = done || was
	}
	if !done {
		return false, store.ErrNotHeld
	}
	return queued, nil
}

// rejoin makes the call, in the session that has the signal of the lease if there is one,
// and keeps the place.
func (s *Store) rejoin(ctx context.Context, r store.ReleaseRequest, next store.WaitRequest) (done, queued, maybe bool, err error) {
	p := &reservedPlace{lease: next.Lease}
	given, taken := int64(0), int64(0)
	if p.seat = s.seats.leave(r.Lease); p.seat != nil {
		given = p.seat.signal
	} else {
		p.seat = s.seats.take(ctx)
	}
	args := []any{[]byte(r.Name), r.Owner, r.Attempt, r.Undo, tombstoneOf(r), r.Renewed, given,
		next.Owner, next.Attempt, []byte(next.Meta), micros(next.TTL), int64(next.Spare), next.Barge, durable(next.Require)}
	scan := func(r row) error { return r.Scan(&done, &queued) }
	p.sent = s.clock.Now()
	if p.seat == nil {
		maybe, err = s.call(ctx, s.calls.rejoin, scan, append(args, taken)...)
	} else {
		taken = newSignal()
		maybe, err = s.callOnce(ctx, 0, p.seat.conn, s.calls.rejoin, scan, append(args, taken)...)
		p.seat.signal = taken
	}
	switch {
	case err != nil:
		p.drop(s.seats)
	case !queued && p.seat != nil:
		s.seats.back(p.seat)
	case queued && !s.rejoined.Put(p.lease, p, func() { p.drop(s.seats) }):
		p.abandon(ctx, s)
		queued = false
	}
	return done, queued, maybe, err
}

// drop drops the seat of a place.
func (p *reservedPlace) drop(t *seats) {
	if p.seat != nil {
		t.drop(p.seat)
	}
}

// abandon gives up a place, or the lease that it has become.
func (p *reservedPlace) abandon(ctx context.Context, s *Store) {
	undo{s, p.lease, false, false}.run(context.WithoutCancel(ctx))
	p.drop(s.seats)
}
