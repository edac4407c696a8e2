package memstore

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
)

// waiter is one Wait under way. All but wake is guarded by the store's mutex.
type waiter struct {
	request store.Request
	// wake holds something when there is news.
	wake chan struct{}
	// round is the last one of the line's in which it stood in line.
	round int
	// position is the one it was told last, and busy why it waits, unless it
	// was told that as well. Nobody is told who did not ask to be.
	position position
	busy     *busy
	asked    bool

	// out: it is not in line any more, since at. Either it was handed the lock,
	// or err says why waiting is of no use, or it barges and may come.
	out  bool
	hold rule.Hold
	at   clock.Instant
	err  error
}

// position is what a waiter wants to know about a change of.
type position struct {
	number int
	holder string
}

// busy is what a waiter is told of it.
type busy struct {
	position  int
	holder    rule.Hold
	expiresIn time.Duration
}

// Wait implements store.Waiter. Its errors are store.ErrInvalid, store.ErrClosed
// and that of ctx, and store.ErrNotHeld if the owner is released meanwhile.
func (s *Store) Wait(ctx context.Context, r store.Request, reason func(error)) (store.Grant, error) {
	if err := r.Check(0); err != nil {
		return store.Grant{}, err
	}
	start := s.clock.Now()
	w := &waiter{request: r, wake: make(chan struct{}, 1), asked: reason != nil}
	if err := s.enter(ctx); err != nil {
		return store.Grant{}, err
	}
	if err := s.stand(w); err != nil {
		s.mu.Unlock()
		return store.Grant{}, err
	}
	for {
		// Here the mutex is locked.
		switch {
		case w.err != nil:
			s.mu.Unlock()
			return store.Grant{}, w.err
		case w.hold.Owner != "":
			s.mu.Unlock()
			return store.Grant{Token: w.hold.Token, Spare: r.Spare, Since: w.at.Sub(start)}, nil
		case w.out:
			if err := s.stand(w); err != nil {
				s.mu.Unlock()
				return store.Grant{}, err
			}
			continue
		}
		news := w.busy
		w.busy = nil
		s.mu.Unlock()
		if news != nil {
			s.tell(w, reason, news.error(r.Name))
		}
		select {
		case <-w.wake:
			s.mu.Lock()
		case <-ctx.Done():
			return store.Grant{}, s.leave(w, ctx.Err())
		}
	}
}

// tell calls reason, without the mutex. If reason panics or ends the goroutine, so
// does the wait, and its place is given up.
func (s *Store) tell(w *waiter, reason func(error), why error) {
	returned := false
	defer func() {
		if !returned {
			s.leave(w, store.ErrNotHeld)
		}
	}()
	reason(why)
	returned = true
}

// stand asks for the lock, or for a place in the line. What comes of it is in w
// then.
func (s *Store) stand(w *waiter) error {
	r, now := w.request, s.clock.Now()
	s.sweepSometimes(now)
	w.out, w.round = false, 0 // the line may be a new one, which counts from the beginning
	if err := s.join(w); err != nil {
		return err
	}
	ask := s.ask(r)
	ask.Fair, ask.Wait = !r.Barge, r.TTL
	rec, ans := rule.Admit(s.alive(r.Name, now), ask, now)
	if ans.Verdict != rule.Granted && ans.Verdict != rule.Busy {
		s.lines[r.Name].dismiss(r.Owner, unexpected("wait for", r.Name, ans))
	}
	s.keep(r.Name, rec, now)
	return nil
}

// leave ends the wait of w, who gave up because of why. If it was handed the
// lock already, or told that it may come, the next one's turn has come.
func (s *Store) leave(w *waiter, why error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	name, owner := w.request.Name, w.request.Owner
	switch {
	case s.closed:
		return store.ErrClosed
	case w.err != nil:
		return w.err
	}
	if l := s.lines[name]; l != nil {
		l.dismiss(owner, why)
	}
	now := s.clock.Now()
	rec, _ := rule.Leave(s.alive(name, now), owner, now)
	s.keep(name, rec, now)
	return why
}

// stands notes the waiter's position for it, if that is news.
func (w *waiter) stands(p position, holder rule.Hold, now clock.Instant) {
	if !w.asked || p == w.position || p.holder == "" {
		return
	}
	w.position = p
	w.busy = &busy{p.number, holder, max(0, holder.Expiry.Sub(now))}
	w.rouse()
}

// rouse wakes the waiter, unless it is about to wake anyway.
func (w *waiter) rouse() {
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

// Draw implements store.Waiter. Its errors are store.ErrNotHeld,
// store.ErrInvalid, store.ErrClosed and that of ctx.
func (s *Store) Draw(ctx context.Context, r store.Request) (store.Drawn, error) {
	if err := r.Check(0); err != nil {
		return store.Drawn{}, err
	}
	if err := s.enter(ctx); err != nil {
		return store.Drawn{}, err
	}
	defer s.mu.Unlock()
	now := s.clock.Now()
	rec, ans := rule.Draw(s.alive(r.Name, now), r.Owner, r.Spare, s.forgotten+1, now)
	s.keep(r.Name, rec, now)
	if ans.Verdict != rule.Done {
		return store.Drawn{}, fmt.Errorf("draw tokens for %q: %w", r.Name, store.ErrNotHeld)
	}
	return store.Drawn{Token: ans.Token, Spare: r.Spare, Waiting: len(rec.Line) > 0}, nil
}
