package memstore

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
)

// waiter is one pending Wait. The store's mutex guards all fields but wake.
type waiter struct {
	request store.WaitRequest
	// wake holds a value when one of the fields below has changed.
	wake chan struct{}
	// round is the last round of the queue in which the waiter had a place.
	round int
	// position is the position last noted for the waiter. busy is the cause that
	// has not been reported yet, or nil. Both are used only if asked is set: the
	// caller of Wait gave a reason function.
	position position
	busy     *busy
	asked    bool

	// out is set when the waiter is no longer in the queue, since at. Either hold
	// is the lease that it was handed, or err says why the wait ended, or the
	// semaphore was resized and the waiter has to ask again.
	out  bool
	hold rule.Hold
	at   clock.Instant
	err  error
}

// position is a waiter's position and the holder it waits for. A change of
// either is reported.
type position struct {
	number int
	holder string
}

// busy is what a *store.BusyError for a waiter is made from.
type busy struct {
	position  int
	holder    rule.Hold
	expiresIn time.Duration
}

// Wait implements driver.Engine. Its errors match store.ErrInvalid,
// store.ErrClosed or ctx.Err(), or store.ErrNotHeld if the owner was released
// during the wait.
func (s *engine) Wait(ctx context.Context, r store.WaitRequest, reason func(error)) (store.Grant, error) {
	if err := r.CheckClass(s.Caps()); err != nil {
		return store.Grant{}, err
	}
	start := s.clock.Now()
	w := &waiter{request: r, wake: make(chan struct{}, 1), asked: reason != nil}
	if err := s.enter(ctx); err != nil {
		return store.Grant{}, err
	}
	if err := s.enqueue(w); err != nil {
		s.mu.Unlock()
		return store.Grant{}, err
	}
	for {
		// The mutex is locked here.
		switch {
		case w.err != nil:
			s.mu.Unlock()
			return store.Grant{}, w.err
		case w.hold.Owner != "":
			g := store.Grant{Token: w.hold.Token, Slot: w.hold.Slot, Since: w.at.Sub(start)}
			s.mu.Unlock()
			return g, nil
		case w.out:
			if err := s.enqueue(w); err != nil {
				s.mu.Unlock()
				return store.Grant{}, err
			}
			continue
		}
		news := w.busy
		w.busy = nil
		s.mu.Unlock()
		if news != nil {
			s.report(w, reason, news.error(r.Name))
		}
		select {
		case <-w.wake:
			s.mu.Lock()
		case <-ctx.Done():
			return store.Grant{}, s.leave(w, ctx.Err())
		}
	}
}

// report calls reason. The mutex must not be locked. If reason panics or ends
// the goroutine, the wait ends and gives up its place.
func (s *engine) report(w *waiter, reason func(error), why error) {
	returned := false
	defer func() {
		if !returned {
			s.leave(w, store.ErrNotHeld)
		}
	}()
	reason(why)
	returned = true
}

// enqueue asks for the lock or, if it is busy, for a place in the queue. The
// result is in w.
func (s *engine) enqueue(w *waiter) error {
	r, now := w.request, s.clock.Now()
	s.sweepSometimes(now)
	w.out, w.round = false, 0 // the queue may be a new one with other rounds
	if err := s.join(w); err != nil {
		return err
	}
	before := s.alive(r.Name, now)
	ask := s.ask(r.Lease)
	ask.Fair, ask.Wait = true, r.TTL
	rec, ans := rule.Admit(before, ask, now)
	if ans.Verdict != rule.Granted && ans.Verdict != rule.Busy {
		s.queues[r.Name].dismiss(r.Owner, refusal("wait for", r.Lease, ans))
	}
	s.keep(r.Name, rec, now)
	return nil
}

// leave ends the wait of w because of why. If w had already been handed the
// lock, it goes to the next waiter.
func (s *engine) leave(w *waiter, why error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	name, owner := w.request.Name, w.request.Owner
	switch {
	case s.closed:
		return store.ErrClosed
	case w.err != nil:
		return w.err
	}
	if l := s.queues[name]; l != nil {
		l.dismiss(owner, why)
	}
	now := s.clock.Now()
	rec, _ := rule.Leave(s.alive(name, now), owner, now)
	s.keep(name, rec, now)
	return why
}

// setPosition records the waiter's position, and wakes it if that has changed.
func (w *waiter) setPosition(p position, holder rule.Hold, now clock.Instant) {
	if !w.asked || p == w.position || p.holder == "" {
		return
	}
	w.position = p
	w.busy = &busy{p.number, holder, max(0, holder.Expiry.Sub(now))}
	w.signal()
}

// signal wakes the waiter. It does nothing if the waiter is already woken.
func (w *waiter) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (b *busy) error(name string) error {
	return &store.BusyError{
		Name:      name,
		Holder:    store.DecodeHolder(b.holder.Owner, b.holder.Meta),
		ExpiresIn: b.expiresIn,
		Position:  b.position,
	}
}
