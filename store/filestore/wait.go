package filestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/internal/validity"
	"github.com/leasehold-dev/leasehold/store"
)

// waiting is one pending Wait.
type waiting struct {
	s      *Store
	r      store.WaitRequest
	reason func(error)
	bell   *bell

	// position and holder are those of the last read of the row.
	position int
	holder   string
	// expiresIn is how much of the holder's lease was left at that time.
	expiresIn time.Duration
	// first is set if no other waiter of this process is in front.
	first bool
	// looks counts the reads of the row since position or holder last changed.
	looks int
	// took is how long the last read took, from the wait for its turn on.
	took time.Duration
	// socket is the name of this process's socket as the row has it, or empty.
	socket string
	// lost counts how often the place disappeared before its turn.
	lost int
	// grant is the lease if it was found without asking for it.
	grant *store.Grant
}

// Wait implements store.Waiter. The waiter has a place in the lock's row. When
// the lock is handed to it, it is notified through a socket or, within the same
// process, directly. It also reads the row from time to time, and often if it has
// no socket. It writes only to refresh its place.
func (s *Store) Wait(ctx context.Context, r store.WaitRequest, reason func(error)) (store.Grant, error) {
	caps := s.Caps()
	if err := s.gate.Enter(cmp.Or(r.Check(caps), r.CheckClass(caps))); err != nil {
		return store.Grant{}, err
	}
	defer s.gate.Leave()
	if reason == nil {
		reason = func(error) {}
	}
	w := &waiting{s: s, r: r, reason: reason}
	p, claimed := s.rejoined.Take(r.Lease)
	if claimed {
		s.bells.claim(p.bell)
		w.socket = p.socket
	} else {
		// Since counts from here, slightly after the call. The caller counts from just
		// before the call and so trusts the lease a little less than it could.
		p.start = clock.System().Now()
		p.bell, p.remove = s.bells.hang(r.Name, r.Owner, false)
	}
	defer p.remove()
	w.bell = p.bell
	start := p.start
	asked, unsure := claimed, false // there is something to take back; a commit may still take effect
	for ; ; claimed = false {
		sent := clock.System().Now()
		ans, maybe, err := p.ans, false, error(nil)
		if !claimed {
			ans, maybe, err = w.ask(ctx)
		}
		if err == nil {
			asked, unsure = true, false
		}
		unsure = unsure || maybe
		if err == nil && ans.Verdict == rule.Granted {
			return store.Grant{Token: ans.Token, Slot: ans.Slot, Since: sent.Sub(start)}, nil
		}
		if err == nil && ans.Verdict != rule.Busy {
			err = refusal("wait for", r.Lease, ans)
		}
		switch {
		case err == nil:
			w.found(ans.Position, ans.Blocker, ans.ExpiresIn)
			err = w.watch(ctx, start)
			if w.grant != nil {
				return *w.grant, nil
			}
		case passing(err):
			reason(err)
			err = w.pause(ctx, s.limit/10)
		}
		if err != nil {
			if asked || unsure {
				s.takeBack(ctx, r.Lease, unsure)
			}
			return store.Grant{}, err
		}
	}
}

// ask asks for the lock, or for a place in the queue. It may be called again by
// the same owner after any result: that refreshes the place or confirms the
// grant.
func (w *waiting) ask(ctx context.Context) (ans rule.Answer, maybe bool, err error) {
	w.socket = ""
	if w.lost < 2 { // else other processes may be unable to reach it and take this one for dead
		w.socket = w.s.push.socket()
	}
	me := w.bell.waiter(w.socket)
	maybe, err = w.s.ask(ctx, func(t *step) (err error) {
		ans, err = t.admit(w.r.Lease, t.lasting(w.r.TTL), w.r.Barge, me)
		return err
	})
	if err != nil {
		err = w.s.failed(ctx, "wait for", w.r.Name, maybe, err)
	}
	return ans, maybe, err
}

// passing reports whether waiting can mend err.
func passing(err error) bool {
	var q *store.QuorumError
	return errors.As(err, &q) && q.Transient()
}

// watch waits until the lock is granted, which sets w.grant, or until it is time
// to ask again: the lock is free, the place is gone or must be refreshed, or
// reading fails (ask reports the error).
func (w *waiting) watch(ctx context.Context, start clock.Instant) error {
	for {
		if err := w.pause(ctx, w.interval()); err != nil {
			return err
		}
		again := false
		sent := clock.System().Now()
		if m := w.s.bells.handed(w.bell); m.Token > 0 && w.handed(m, sent.Sub(start)) {
			return nil
		}
		err := w.s.read(ctx, func(t *step) error {
			rec, err := t.read(w.r.Name)
			if rec.Waiters[w.r.Owner].Wait != w.bell.wait {
				w.socket = "" // an older version has rewritten the row
			}
			if err != nil {
				return err
			}
			live := rule.Expire(rec.Record, t.now)
			w.s.bells.share(w.r.Name, live, w.bell)
			again = w.look(live, t.now, sent.Sub(start))
			return nil
		})
		w.took = clock.System().Now().Sub(sent)
		if err != nil || again || w.grant != nil || w.socket != "" && w.s.push.socket() != w.socket {
			return nil
		}
	}
}

// handed takes the lease that message m announces. It does not if too little of
// the lease is left: ask then extends it.
func (w *waiting) handed(m message, since time.Duration) bool {
	if !w.r.Kind.IsMutex() {
		return false // the message does not have the slot
	}
	now, err := w.s.d.now()
	return err == nil && w.take(rule.Hold{Token: m.Token, Expiry: m.Expiry}, now, since)
}

// take accepts the lease h. since is the time since the wait began. The start of
// the lease is computed from its end and the TTL.
func (w *waiting) take(h rule.Hold, now clock.Instant, since time.Duration) bool {
	left := h.Expiry.Sub(now) - w.s.d.resolution
	since += left - w.r.TTL
	if since < 0 || left < w.r.TTL/2 {
		return false
	}
	w.grant = &store.Grant{Token: h.Token, Slot: h.Slot, Since: since}
	return true
}

// look examines the row and reports whether to call ask. since is the time from
// the start of the wait to the start of the read.
func (w *waiting) look(r rule.Record, now clock.Instant, since time.Duration) bool {
	if i := slices.IndexFunc(r.Holds, func(h rule.Hold) bool { return h.Owner == w.r.Owner }); i >= 0 {
		return r.Holds[i].Broken || !w.take(r.Holds[i], now, since)
	}
	i := slices.IndexFunc(r.Queue, func(p rule.Place) bool { return p.Owner == w.r.Owner })
	if i < 0 && !w.r.Barge {
		w.lost++
	}
	if i < 0 || len(r.Holds) == 0 {
		return true
	}
	if left := r.Queue[i].Expiry.Sub(now); left < w.r.TTL-validity.RenewAfter(w.r.TTL) {
		return true
	}
	if _, turns := rule.Advance(r, 0, now); r.Spec != rule.Mutex && len(turns) > 0 {
		return true // one of several leases has ended
	}
	h := slices.MinFunc(r.Holds, func(a, b rule.Hold) int { return cmp.Compare(a.Expiry, b.Expiry) })
	w.found(i+1, rule.Blocker{Owner: h.Owner, Meta: h.Meta}, h.Expiry.Sub(now))
	return false
}

// found records the holder and the position, and reports them if they have
// changed.
func (w *waiting) found(position int, in rule.Blocker, expiresIn time.Duration) {
	w.expiresIn = expiresIn
	w.looks++
	w.first = w.s.bells.stands(w.r.Name, w.bell, position)
	if position == w.position && in.Owner == w.holder {
		return
	}
	w.position, w.holder, w.looks = position, in.Owner, 0
	w.reason(&store.BusyError{Name: w.r.Name, Holder: decodeBlocker(in), ExpiresIn: expiresIn, Position: position})
}

// interval returns the time until the next read of the row. A waiter with a
// socket reads only as a precaution, since each time its process wakes up costs 0.7 ms of a
// processor. A waiter without one reads less often the
// farther back it is. A waiter behind another one of its process is woken by that
// one. Every waiter reads soon enough to notice the end of the holder's lease and
// to keep its own place.
//
// A waiter pauses for a multiple of what its last read took. On a machine so busy that
// reads last long, more of them would only keep the holder from releasing.
func (w *waiting) interval() time.Duration {
	const first, slowest, behind, rarest = 10 * time.Millisecond, 50 * time.Millisecond, 25 * time.Millisecond, time.Second
	const precaution = 2 * rarest
	d := min(first+time.Duration(w.looks)*2*time.Millisecond, slowest)
	most := w.r.TTL / 8
	switch {
	case !w.first: // the one that reads shares what it has read
		d = 8 * rarest
	case w.socket != "" && w.position > 1:
		// The waiters in front may all be dead, so that none of them takes the lock.
		d = min(precaution, max(w.expiresIn, 0)+time.Duration(w.position)*behind)
	case w.socket != "":
		d = min(rarest, w.expiresIn)
	case w.position > 1:
		d = min(max(d, time.Duration(w.position)*behind), rarest)
	default:
		d = min(d, w.expiresIn)
	}
	const share = 8 // of the time that a waiter may spend reading, one in share
	return max(min(max(d, share*w.took), most), time.Millisecond)
}

// pause waits for about d, or until the bell rings. It returns an error if the
// store is closed or ctx ends.
func (w *waiting) pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d*3/4 + rand.N(d/2+1)) // random, so that waiters get out of step
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.bell.c:
	case <-w.s.gate.Closing():
		return store.ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("wait for %q in %s: %w", w.r.Name, w.s.node, ctx.Err())
	}
	return nil
}
