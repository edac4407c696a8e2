package recordstore

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
	"github.com/leasehold-dev/leasehold/internal/shown"
	"github.com/leasehold-dev/leasehold/internal/validity"
	"github.com/leasehold-dev/leasehold/store"
)

// waiter is one pending Wait. It reads only what the register has learned, and asks for a step
// to enter the queue, to refresh its place, and to hand on a lock whose lease has expired.
type waiter struct {
	r      store.WaitRequest
	g      *register
	reason func(error)
	// confirm means that a lease counts only if this client has written it: what a read shows
	// may not outlive a crash.
	confirm bool
	jitter  time.Duration
	wake    chan struct{} // holds a value when the record has changed for this waiter

	position int    // as it was reported last,
	holder   string // with this one

	trouble error // why the record cannot be read; guarded by the register's mutex
}

// grace is how much later each waiter acts on the end of a lease than the one before it: the
// others need not act if the first one does.
const grace = 50 * time.Millisecond

// glance is how often the first waiter looks whether the processes before it have ended. A
// later one does so less often.
const glance = 100 * time.Millisecond

// Wait implements driver.Engine.
func (s *engine) Wait(ctx context.Context, r store.WaitRequest, reason func(error)) (_ store.Grant, err error) {
	caps := s.Caps()
	if err := r.CheckClass(caps); err != nil {
		return store.Grant{}, err
	}
	start := s.now()
	claim, claimed := s.rejoined.Take(r.Lease)
	if claimed {
		start = claim.sent
	}
	refresh := validity.RenewAfter(r.TTL)
	w := &waiter{
		r: r, g: s.register(r.Name), reason: reason, wake: make(chan struct{}, 1),
		confirm: caps.Class > store.Efficiency && s.peers == nil, jitter: rand.N(refresh/10 + 1),
	}
	if !w.join() {
		return store.Grant{}, fmt.Errorf("%w: owner %s already waits for %q: every attempt needs a new owner", store.ErrInvalid, r.Owner, r.Name)
	}
	defer w.leave()
	asked := claimed
	defer func() {
		if err != nil && asked {
			s.undo(r.Lease)
		}
	}()
	for next := (decision{ask: !claimed}); ; {
		if ctx.Err() != nil {
			return store.Grant{}, s.failed("wait for", r.Name, false, ctx.Err())
		}
		if next.ask {
			sent := s.now()
			var ans rule.Answer
			full := false
			maybe, err := w.g.do(ctx, func(t *txn) { ans, full = w.enter(t) })
			asked = asked || maybe || err == nil && !full
			switch {
			case err != nil && ctx.Err() != nil:
				continue
			case errors.Is(err, ErrRefused):
				return store.Grant{}, s.failed("wait for", r.Name, maybe, err)
			case err != nil: // the engine may answer again
				w.tell(s.failed("wait for", r.Name, maybe, err))
				clock.Sleep(ctx, s.poll)
				continue
			case full:
				return store.Grant{}, s.full("wait for", r.Name)
			case ans.Verdict == rule.Granted:
				return store.Grant{Token: ans.Token, Slot: ans.Slot, Since: sent.Sub(start)}, nil
			case ans.Verdict != rule.Busy:
				return store.Grant{}, refusal("wait for", r.Lease, ans)
			}
			w.report(ans.Position, ans.Blocker, ans.ExpiresIn)
		}
		w.g.mu.Lock()
		w.g.followLocked()
		snap, trouble := w.g.last, w.trouble
		w.trouble = nil
		w.g.mu.Unlock()
		if trouble != nil {
			w.tell(s.failed("wait for", r.Name, false, trouble))
		}
		next = w.decide(snap, s.now())
		switch {
		case next.granted != nil:
			return store.Grant{Token: next.granted.Token, Slot: next.granted.Slot, Since: next.since.Sub(start)}, nil
		case next.ask:
			continue
		}
		w.report(next.position, next.blocker, next.expiresIn)
		if s.peers != nil { // to see whether the processes of those before have ended
			next.rest = min(next.rest, glance*time.Duration(next.position))
		}
		timer := time.NewTimer(next.rest)
		select {
		case <-w.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

func (w *waiter) join() bool {
	w.g.mu.Lock()
	defer w.g.mu.Unlock()
	if w.g.waiters[w.r.Owner] != nil {
		return false
	}
	w.g.waiters[w.r.Owner] = w
	return true
}

func (w *waiter) leave() {
	w.g.mu.Lock()
	defer w.g.mu.Unlock()
	delete(w.g.waiters, w.r.Owner)
}

// wakeLocked wakes the waiters that have something to do now: the first ones, and those that have
// no place any more, because they have the lock or have lost their place.
func (g *register) wakeLocked() {
	if len(g.waiters) == 0 {
		return
	}
	placed := make(map[*waiter]bool, len(g.waiters))
	for i, p := range g.last.rec.Queue {
		if w := g.waiters[p.Owner]; w != nil && i > 0 {
			placed[w] = true
		}
	}
	for _, w := range g.waiters {
		if !placed[w] {
			w.wakeUp()
		}
	}
}

func (w *waiter) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// troubleLocked has the waiter report why the record cannot be read.
func (w *waiter) troubleLocked(err error) {
	w.trouble = err
	w.wakeUp()
}

// enter is the step that asks for the lock or a place, or refreshes the place. With it, the
// other places of this process are refreshed.
func (w *waiter) enter(t *txn) (ans rule.Answer, full bool) {
	if ans, fresh := w.refreshed(t); fresh {
		t.needless++
		return ans, false
	}
	ans, full = t.admit(w.r.Lease, w.r.TTL)
	w.g.mu.Lock()
	defer w.g.mu.Unlock()
	if !t.wrote || len(w.g.waiters) == 1 {
		return ans, full
	}
	queue := slices.Clone(t.rec.Queue)
	for i, p := range queue {
		other := w.g.waiters[p.Owner]
		if l, _ := t.snap.ownLife(p.Owner); other != nil && other != w && t.now.Sub(l.first) > other.r.TTL/6 {
			queue[i].Expiry = max(p.Expiry, t.now.Add(other.r.TTL))
			t.touch(p.Owner)
		}
	}
	t.rec.Queue = queue
	return ans, full
}

// refreshed reports whether nothing is left to do, since a step of another waiter has refreshed the
// place while this one was waiting for its turn, or has been answered and shows the lease.
func (w *waiter) refreshed(t *txn) (ans rule.Answer, fresh bool) {
	l, own := t.snap.ownLife(w.r.Owner)
	r := rule.Expire(t.rec, t.now)
	mine := func(owner string) bool { return owner == w.r.Owner }
	if i := slices.IndexFunc(r.Holds, func(h rule.Hold) bool { return mine(h.Owner) }); i >= 0 {
		return rule.Answer{Verdict: rule.Busy}, own && !t.wrote && w.usable(r.Holds[i], t.snap, t.now)
	}
	fresh = t.touched[entry{owner: w.r.Owner}] || own && t.now.Sub(l.first) <= w.r.TTL/6
	i := slices.IndexFunc(r.Queue, func(p rule.Place) bool { return mine(p.Owner) })
	if _, turns := rule.Advance(r, 0, t.now); !fresh || i < 0 || len(turns) > 0 || i == 0 && len(r.Holds) == 0 {
		return ans, false
	}
	return rule.Answer{Verdict: rule.Busy}, true
}

// usable reports whether a lease of this waiter, as a version shows it, can be used without another
// write.
func (w *waiter) usable(h rule.Hold, snap *snapshot, now clock.Instant) bool {
	return !h.Broken && (!w.confirm || snap.acknowledged) && snap.lives[entry{owner: h.Owner}].expiry.Sub(now) >= w.r.TTL/2
}

// decision is what a waiter does next.
type decision struct {
	granted *rule.Hold    // has the lease,
	since   clock.Instant // whose validity counts from here
	ask     bool          // asks for a step
	rest    time.Duration // does nothing

	position  int
	blocker   rule.Blocker
	expiresIn time.Duration
}

// decide says what to do about a version of the record.
func (w *waiter) decide(snap *snapshot, now clock.Instant) decision {
	if snap == nil {
		return decision{ask: true}
	}
	mine, own := snap.ownLife(w.r.Owner)
	if !own { // it is gone, or an answer was lost
		return decision{ask: true}
	}
	rec := w.g.s.withoutEnded(snap, now)
	r := rule.Expire(rec, now)
	for i := range r.Holds {
		if h := &r.Holds[i]; h.Owner == w.r.Owner {
			if !w.usable(*h, snap, now) {
				return decision{ask: true}
			}
			return decision{granted: h, since: mine.first}
		}
	}
	i := slices.IndexFunc(r.Queue, func(p rule.Place) bool { return p.Owner == w.r.Owner })
	if i < 0 || i == 0 && len(r.Holds) == 0 {
		return decision{ask: true}
	}
	next := mine.first.Add(validity.RenewAfter(w.r.TTL) - w.jitter)
	late := time.Duration(i) * grace
	if _, turns := rule.Advance(r, 0, now); len(turns) > 0 {
		over := clock.Instant(0)
		for _, h := range rec.Holds {
			if h.Expiry <= now {
				over = max(over, h.Expiry)
			}
		}
		next = min(next, over.Add(late))
	}
	d := decision{position: i + 1}
	if len(r.Holds) > 0 {
		first := slices.MinFunc(r.Holds, func(a, b rule.Hold) int { return cmp.Compare(a.Expiry, b.Expiry) })
		d.blocker, d.expiresIn = rule.Blocker{Owner: first.Owner, Meta: first.Meta}, first.Expiry.Sub(now)
		next = min(next, first.Expiry.Add(late))
	}
	if d.rest = next.Sub(now); d.rest <= 0 {
		return decision{ask: true}
	}
	d.rest = max(d.rest, time.Millisecond)
	return d
}

// report tells the caller of Wait for whom it waits, if that has changed.
func (w *waiter) report(position int, in rule.Blocker, expiresIn time.Duration) {
	if position == 0 || in.Owner == "" || position == w.position && in.Owner == w.holder {
		return
	}
	w.position, w.holder = position, in.Owner
	holder := shown.Holder(in.Owner, in.Meta)
	holder.Waiting = in.Waiting
	w.tell(&store.BusyError{Name: w.r.Name, Holder: holder, ExpiresIn: expiresIn, Position: position})
}

func (w *waiter) tell(why error) {
	if w.reason != nil {
		w.reason(why)
	}
}

// rejoin is a place that a release has reserved, and no Wait has claimed yet.
type rejoin struct {
	lease store.Lease
	sent  clock.Instant
}

// ReleaseAndRejoin implements driver.Engine, with one write.
func (s *engine) ReleaseAndRejoin(ctx context.Context, r store.ReleaseRequest, next store.WaitRequest) (bool, error) {
	if !r.Kind.IsMutex() || !next.Kind.IsMutex() {
		return false, s.Release(ctx, r)
	}
	sent, done, queued := s.now(), false, false // a step whose context has ended may still set them
	maybe, err := s.register(r.Name).do(ctx, func(t *txn) {
		queued = false
		done = t.end(r) || t.ambiguous && done
		if done && len(t.rec.Holds) > 0 { // it passes to another owner
			ans, _ := t.admit(next.Lease, next.TTL)
			queued = ans.Position > 0 || ans.Verdict == rule.Granted
		}
	})
	switch {
	case err != nil:
		if maybe {
			s.undo(next.Lease)
		}
		return false, s.failed("release", r.Name, maybe, err)
	case !done:
		return false, store.ErrNotHeld
	case queued && !s.rejoined.Put(next.Lease, rejoin{next.Lease, sent}, func() { s.undo(next.Lease) }):
		s.undo(next.Lease)
		return false, nil
	}
	return queued, nil
}
