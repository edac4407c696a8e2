package filestore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/internal/validity"
	"github.com/leasehold-dev/leasehold/store"
)

// waiting is one Wait under way.
type waiting struct {
	s      *Store
	r      store.Request
	reason func(error)
	bell   *bell

	// position in the line and holder are what was found last.
	position int
	holder   string
	// expiresIn is how long the holder's lease had left then.
	expiresIn time.Duration
	// first: nobody of this process stands before it.
	first bool
	// looks counts how often that was found.
	looks int
	// socket is where this process is told of the place; empty if nowhere.
	socket string
	// lost counts how often the place was gone before its turn came.
	lost int
	// grant is what a look has found, which needs no asking.
	grant *store.Grant
}

// Wait implements store.Waiter. The waiter leaves its place in the lock's row, and
// is told when its turn comes, through a socket or, within a process, directly. It
// looks at the row now and then all the same, and often if it has no socket. It
// writes nothing but to refresh its place.
func (s *Store) Wait(ctx context.Context, r store.Request, reason func(error)) (store.Grant, error) {
	if err := r.Check(s.maxTTL); err != nil {
		return store.Grant{}, err
	}
	if err := s.gate.enter(); err != nil {
		return store.Grant{}, err
	}
	defer s.gate.leave()
	if reason == nil {
		reason = func(error) {}
	}
	w := &waiting{s: s, r: r, reason: reason}
	bell, remove := s.bells.hang(r.Name, r.Owner)
	defer remove()
	w.bell = bell
	// Since is counted from here, a moment after the call: the caller, who counts
	// from before it, then trusts the lease a little less than it could.
	start := clock.System().Now()
	asked, unsure := false, false // whether there is something to take back, and whether it may be late
	for {
		sent := clock.System().Now()
		ans, maybe, err := w.ask(ctx)
		if err == nil {
			asked, unsure = true, false
		}
		unsure = unsure || maybe
		if err == nil && ans.Verdict == rule.Granted {
			return store.Grant{Token: ans.Token, Spare: r.Spare, Since: sent.Sub(start)}, nil
		}
		if err == nil && ans.Verdict != rule.Busy {
			err = refusal("wait for", r.Name, ans)
		}
		switch {
		case err == nil:
			w.found(ans.Position, ans.Blocker.Owner, ans.Blocker.Meta, ans.ExpiresIn)
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
				s.takeBack(ctx, r, unsure)
			}
			return store.Grant{}, err
		}
	}
}

// ask asks for the lock, or for a place in the line. The same owner may ask again
// whatever came of it: that refreshes the place, or confirms the grant.
func (w *waiting) ask(ctx context.Context) (ans rule.Answer, maybe bool, err error) {
	w.socket = ""
	if w.lost < 2 { // else others may not reach it, and take us for dead again and again
		w.socket = w.s.push.socket()
	}
	me := waiter{}
	if w.socket != "" {
		me = waiter{Socket: w.socket, Wait: w.bell.wait}
	}
	maybe, err = w.s.write(ctx, func(t *step) (err error) {
		ans, err = t.admit(w.r, t.lasting(w.r.TTL), w.r.Barge, me)
		return err
	})
	if err != nil {
		err = w.s.failed(ctx, "wait for", w.r.Name, maybe, err)
	}
	return ans, maybe, err
}

// passing says whether err is of a kind that waiting can mend.
func passing(err error) bool {
	var q *store.QuorumError
	return errors.As(err, &q) && q.Transient()
}

// watch looks until the lock is ours, which sets grant, or it is time to ask again:
// because the lock is nobody's, because the place is gone or has to be refreshed,
// or because looking fails, which asking does better.
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
			again = err != nil || w.look(rule.Expire(rec.Record, t.now), t.now, sent.Sub(start))
			return err
		})
		if err != nil || again || w.grant != nil || w.socket != "" && w.s.push.socket() != w.socket {
			return nil
		}
	}
}

// handed takes the lease that a message is about, unless it has not long to go: then
// a look at the row leads to asking, which makes it longer.
func (w *waiting) handed(m message, since time.Duration) bool {
	now, err := w.s.d.now(context.Background(), nil)
	return err == nil && w.take(m.Token, m.Expiry.Sub(now), since)
}

// take accepts a lease that has so much left now, a time of since after the wait
// began. The lease began when it would have for its TTL to end when it does.
func (w *waiting) take(token fence.Token, left, since time.Duration) bool {
	left -= w.s.d.resolution
	since += left - w.r.TTL
	if since < 0 || left < w.r.TTL/2 {
		return false
	}
	w.grant = &store.Grant{Token: token, Since: since}
	return true
}

// look says whether there is something to ask for. It was begun a time of since
// after the wait was.
func (w *waiting) look(r rule.Record, now clock.Instant, since time.Duration) bool {
	if len(r.Holds) > 0 && r.Holds[0].Owner == w.r.Owner {
		return !w.take(r.Holds[0].Token, r.Holds[0].Expiry.Sub(now), since)
	}
	i := slices.IndexFunc(r.Line, func(p rule.Place) bool { return p.Owner == w.r.Owner })
	if i < 0 && !w.r.Barge {
		w.lost++
	}
	if i < 0 || len(r.Holds) == 0 {
		return true
	}
	if left := r.Line[i].Expiry.Sub(now); left < w.r.TTL-validity.RenewAfter(w.r.TTL) {
		return true
	}
	h := r.Holds[0]
	w.found(i+1, h.Owner, h.Meta, h.Expiry.Sub(now))
	return false
}

// found notes who has the lock and where we stand, and tells what is new of it.
func (w *waiting) found(position int, holder, meta string, expiresIn time.Duration) {
	w.expiresIn = expiresIn
	w.looks++
	w.first = w.s.bells.stands(w.r.Name, w.bell, position)
	if position == w.position && holder == w.holder {
		return
	}
	w.position, w.holder, w.looks = position, holder, 0
	w.reason(&store.BusyError{Name: w.r.Name, Holder: store.DecodeHolder(holder, meta), ExpiresIn: expiresIn, Position: position})
}

// interval is the time until the next look. A waiter that is told of its turn
// looks only to be sure; one that is not looks the more rarely the farther back
// it stands. Whoever stands behind another waiter of its process is woken by that.
// Nobody misses the end of the holder's lease, and nobody is so late that it could
// lose its place.
func (w *waiting) interval() time.Duration {
	const first, slowest, behind, rarest = 10 * time.Millisecond, 50 * time.Millisecond, 25 * time.Millisecond, time.Second
	d := min(first+time.Duration(w.looks)*2*time.Millisecond, slowest)
	switch {
	case !w.first:
		d = rarest
	case w.socket != "" && w.position > 1:
		// Those before us may all be dead, so that nobody takes the lock over.
		d = min(rarest, max(w.expiresIn, 0)+time.Duration(w.position)*behind)
	case w.socket != "":
		d = min(rarest/4, w.expiresIn)
	case w.position > 1:
		d = min(max(d, time.Duration(w.position)*behind), rarest)
	default:
		d = min(d, w.expiresIn)
	}
	return max(min(d, w.r.TTL/8), time.Millisecond)
}

// pause lets about d pass, or less if somebody rings. Its error says that the
// wait is of no use any more.
func (w *waiting) pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d*3/4 + rand.N(d/2+1)) // uneven, so that those who wait get out of step
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.bell.c:
	case <-w.s.gate.shut:
		return store.ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("wait for %q in %s: %w", w.r.Name, w.s.node, ctx.Err())
	}
	return nil
}
