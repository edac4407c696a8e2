package sqlstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// waiting is one pending Wait.
type waiting struct {
	s      *Store
	r      store.WaitRequest
	reason func(error)
	start  clock.Instant

	// seat is the connection of the waiter, or nil: it polls.
	seat *seat
	// since is when the last request was sent that made or refreshed the place.
	since clock.Instant
	last  answer
	jump  error // of the server's clock, as of the last answer
	// unsure is set if a request failed and may still take effect. placed is set if
	// one took effect.
	unsure, placed bool
	// byKind is set if the last request was to askKind, so that the place is not that of
	// a mutex. Such a waiter has no seat.
	byKind bool
	// signalled is set if the session of the seat has taken its signal: the waiter
	// was refused at first, or somebody waited for the lock lately.
	signalled bool
	pace      pace
}

// Wait implements store.Waiter. A waiter with a connection of its own is woken by the
// server when the one before it releases the lock or leaves the queue. Without one it
// polls. So does a waiter for a semaphore or a read-write lock, which may have to wait for
// any of several owners.
func (s *Store) Wait(ctx context.Context, r store.WaitRequest, reason func(error)) (store.Grant, error) {
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
	if reason == nil {
		reason = func(error) {}
	}
	outer := ctx
	ctx, cancel := s.gate.Until(ctx)
	defer cancel()
	w := &waiting{s: s, r: r, reason: reason, start: s.clock.Now(), pace: pace{ttl: r.TTL, together: r.Kind.Normal().Limit, patient: s.engine.patient()}}
	if p, ok := s.rejoined.Take(r.Lease); ok {
		w.claim(p)
	}
	returned := false
	defer func() { // also if reason panics
		if w.seat != nil {
			s.seats.drop(w.seat)
		}
		if !returned && (w.placed || w.unsure) {
			undo{s, r.Lease, w.byKind, w.unsure}.start(outer)
		}
	}()
	g, err := w.run(ctx)
	if err != nil {
		return store.Grant{}, err
	}
	returned = true
	return g, nil
}

// run asks and waits until the lock is granted or an error shows that waiting is of
// no use.
func (w *waiting) run(ctx context.Context) (store.Grant, error) {
	for claimed := w.placed; ; claimed = false {
		var err error
		if !claimed {
			err = w.ask(ctx)
		}
		if err == nil && !w.last.held() {
			err = w.watch(ctx)
		}
		if err == nil && w.last.held() {
			g, jump := w.granted()
			if jump == nil {
				return g, nil
			}
			err = jump
		}
		switch {
		case err == nil: // the place is gone
		case !passing(err):
			return store.Grant{}, err
		default:
			w.reason(err)
			if !clock.Sleep(ctx, w.pace.trouble()) {
				return store.Grant{}, w.s.failed(ctx, "wait for", w.r.Name, false, ctx.Err())
			}
		}
	}
}

// passing reports whether waiting can mend err.
func passing(err error) bool {
	var q *store.QuorumError
	return errors.As(err, &q) && q.Transient()
}

// ask makes a request for the lock or a place. It can be repeated with the same
// owner after any result. As long as it is not known whether sessions last, it asks for the
// lock alone first: to find that out takes two connections, and a free lock only one.
func (w *waiting) ask(ctx context.Context) error {
	w.stand()
	q := request{Lease: w.r.Lease, spare: w.r.Spare, durable: durable(w.r.Require), barge: w.r.Barge && !w.pace.lost()}
	var sent clock.Instant
	var err error
	alone := !w.placed && !w.unsure && w.r.Kind.IsMutex() && w.s.seats.mayLast()
	if alone {
		sent, err = w.request(ctx, q)
	}
	if !alone || err == nil && !w.last.held() {
		q.wait, q.signal = true, func() int64 {
			w.probe(ctx)
			w.sit(ctx)
			if w.seat == nil {
				return 0
			}
			return w.seat.signal
		}
		sent, err = w.request(ctx, q)
	}
	if err != nil {
		return err
	}
	w.placed = true
	w.signalled = w.seat != nil && (w.last.verdict == busy || w.last.ahead != 0)
	switch w.last.verdict {
	case granted, regranted:
		w.since = sent
		return nil
	case busy:
		w.since = sent
		w.found()
		return nil
	}
	return w.last.refusal("wait for", w.r.Lease)
}

// request makes one request, and returns when it was sent.
func (w *waiting) request(ctx context.Context, q request) (sent clock.Instant, err error) {
	w.byKind, err = q.ask(func(st statement, scan scanner, args []any) (again bool, err error) {
		sent = w.s.clock.Now()
		if err := w.call(ctx, 0, st, scan, args...); err != nil {
			return false, err
		}
		if w.last.verdict == otherKind && w.seat != nil { // its session has not taken the signal
			w.s.seats.back(w.seat)
			w.seat = nil
		}
		return w.last.verdict == otherKind || w.last.verdict == nowMutex, nil
	}, w.s.calls)
	return sent, err
}

// claim continues to wait in a place that was taken with a release.
func (w *waiting) claim(p *reservedPlace) {
	w.seat, w.start, w.since = p.seat, p.sent, p.sent
	w.placed, w.signalled = true, p.seat != nil
	// Nothing is known of the lock but that another owner has it.
	w.last = answer{verdict: busy, position: 1, refreshed: true}
	if w.seat != nil {
		w.last.ahead = w.seat.signal
	}
}

// probedWithin is how long a waiter delays its place to find out whether sessions last.
const probedWithin = 200 * time.Millisecond

// probe finds out whether sessions last, unless that is known or takes long. A waiter does
// so before it joins the queue, so that its place has its signal from the start. If it takes
// long, it goes on in the background and the waiter polls meanwhile: if it did not, and were
// handed the lock, all others would wait until it looks.
func (w *waiting) probe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, probedWithin)
	defer cancel()
	w.s.seats.probe(ctx)
}

// sit takes a seat if there is one.
func (w *waiting) sit(ctx context.Context) {
	w.seat, w.signalled = w.s.seats.take(ctx), false
}

// stand gives up the seat.
func (w *waiting) stand() {
	if w.seat != nil {
		w.s.seats.drop(w.seat)
		w.seat = nil
	}
}

// watch waits until the lock is handed to the waiter. It returns nil also if the
// place is gone.
func (w *waiting) watch(ctx context.Context) error {
	for {
		w.sitLate(ctx)
		if d := w.pace.pause(&w.last, w.seat != nil); d > 0 {
			if !w.rest(ctx, d*3/4+rand.N(d/2+1)) {
				return w.s.failed(ctx, "wait for", w.r.Name, false, ctx.Err())
			}
			w.sitLate(ctx)
		}
		block, signal := time.Duration(0), int64(0)
		if w.seat != nil {
			signal = w.seat.signal
		}
		if w.signalled { // otherwise the place has to show the signal first
			block = w.pace.block()
		}
		sent := w.s.clock.Now()
		var err error
		if w.byKind {
			err = w.call(ctx, 0, w.s.calls.awaitKind, (*answer).scanKind, []byte(w.r.Name), w.r.Owner, micros(w.r.TTL))
		} else {
			err = w.call(ctx, block, w.s.calls.await, (*answer).scan, []byte(w.r.Name), w.r.Owner, micros(w.r.TTL), micros(block), signal)
		}
		if err != nil {
			if w.seat == nil || ctx.Err() != nil {
				return err
			}
			// The place and its signal are as they were.
			w.reason(err)
			if !clock.Sleep(ctx, w.pace.trouble()) {
				return w.s.failed(ctx, "wait for", w.r.Name, false, ctx.Err())
			}
			continue
		}
		if w.last.refreshed {
			w.since = sent
			w.signalled = w.seat != nil
		}
		if w.last.waited && w.s.clock.Now().Sub(sent) >= min(block, slowest) {
			w.pace.looks = 0 // it was of use to wait in the server
		}
		switch w.last.verdict {
		case regranted:
			// A lease of which much is over is extended first.
			if w.s.clock.Now().Sub(w.since) > w.r.TTL/2 {
				w.last.verdict = gone
			}
			return nil
		case gone:
			w.pace.losses++
			return nil
		}
		w.found()
	}
}

// sitLate takes a seat if there was none before, or no time to probe. A waiter does so
// before each pause: it may be handed the lock meanwhile, and all others would wait for it.
func (w *waiting) sitLate(ctx context.Context) {
	if w.seat == nil && !w.byKind {
		w.s.seats.startProbe(ctx)
		w.sit(ctx)
	}
}

// rest waits for d. A waiter without a seat waits no longer than until it is known whether
// sessions last: then there may be one. It returns false if ctx has ended.
func (w *waiting) rest(ctx context.Context, d time.Duration) bool {
	var known <-chan struct{}
	if w.seat == nil && !w.byKind {
		known = w.s.seats.probeUnderWay()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-known:
	case <-ctx.Done():
		return false
	}
	return true
}

// call calls a procedure of ask or await, on the waiter's own connection if it has one. There the
// call may wait for block in the server. After an error the waiter still has the connection only if
// the server has done nothing but end the call.
func (w *waiting) call(ctx context.Context, block time.Duration, query statement, scan scanner, args ...any) (err error) {
	var a answer
	each := func(r row) error { return scan(&a, r) }
	var maybe bool
	sent := w.s.clock.Now()
	if w.seat != nil {
		maybe, err = w.s.callOnce(ctx, block, w.seat.conn, query, each, args...)
	} else {
		maybe, err = w.s.call(ctx, query, each, args...)
	}
	if err != nil {
		w.unsure = w.unsure || maybe
		if !w.s.engine.fault(err).aborted {
			w.stand()
		}
		return w.s.failed(ctx, "wait for", w.r.Name, maybe, err)
	}
	if w.seat != nil {
		w.s.seats.same(w.seat, a.session)
	}
	w.jump = w.s.reading(sent, a.at)
	w.last = a
	return nil
}

// granted returns the lease. If the server's clock has jumped, it gives the lease
// back and returns why.
func (w *waiting) granted() (store.Grant, error) {
	l := w.r.Lease
	if w.jump != nil {
		w.stand()
		undo{w.s, l, w.byKind, false}.run(context.Background())
		return store.Grant{}, w.jump
	}
	switch seat := w.seat; {
	case seat == nil:
	case !w.signalled:
		w.s.seats.back(seat)
	default:
		w.s.seats.keep(seat, l)
	}
	w.seat = nil
	return store.Grant{
		Token:    w.last.token,
		Spare:    min(w.last.spare, w.r.Spare),
		Slot:     w.last.slot,
		Since:    max(0, w.since.Sub(w.start)),
		Repeated: w.unsure,
	}, nil
}

// found reports the holder and the position if they have changed.
func (w *waiting) found() {
	if w.pace.news(&w.last) {
		w.reason(w.last.busyError(w.r.Name))
	}
}
