package memstore

import (
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
)

// line is all the Waits for one lock. Who stands where is the record's business;
// here is how to reach them. It is guarded by the store's mutex.
type line struct {
	waiters map[string]*waiter // by owner
	// rounds counts the calls of tell.
	rounds int

	// timer goes off when the holder's lease is over, at due or earlier. It is
	// set when armed.
	timer *time.Timer
	armed bool
	due   clock.Instant
	// least is how long it is set for at least.
	least time.Duration
}

// join adds a waiter to the line for its lock, before its place is asked for.
func (s *Store) join(w *waiter) error {
	name, owner := w.request.Name, w.request.Owner
	l := s.lines[name]
	if l == nil {
		l = &line{waiters: make(map[string]*waiter)}
		s.lines[name] = l
	}
	if l.waiters[owner] != nil {
		return fmt.Errorf("%w: owner %s waits for %q already: every attempt needs an owner of its own", store.ErrInvalid, owner, name)
	}
	if l.timer == nil {
		l.timer = time.AfterFunc(time.Hour, func() { s.expired(name, l) })
		l.timer.Stop()
	}
	l.waiters[owner] = w
	return nil
}

// settled is the record of the lock after it was handed to those whose turn has
// come by the mere passing of time.
func (s *Store) settled(name string, now clock.Instant) rule.Record {
	r := s.alive(name, now)
	if len(r.Line) == 0 || len(r.Holds) > 0 {
		return r // there is nobody to hand it to, or nothing to hand on
	}
	s.keep(name, r, now)
	return s.records[name]
}

// alive is the record of the lock as it is now. Each place in it lasts as long as
// one that was just asked for: a waiter of this process is alive, and a place
// that nobody waits in is taken out at once, so it is enough to see to it
// whenever somebody looks.
func (s *Store) alive(name string, now clock.Instant) rule.Record {
	r, l := s.records[name], s.lines[name]
	if l == nil {
		return rule.Expire(r, now)
	}
	r.Line = slices.Clone(r.Line)
	for i, p := range r.Line {
		if w := l.waiters[p.Owner]; w != nil {
			r.Line[i].Expiry = max(p.Expiry, now.Add(w.request.TTL))
		}
	}
	return rule.Expire(r, now)
}

// tell lets the waiters know what has become of them, and watches over the
// lease of whoever holds the lock now.
func (l *line) tell(r rule.Record, now clock.Instant) {
	var holder rule.Hold
	if len(r.Holds) > 0 {
		holder = r.Holds[0]
	}
	l.rounds++
	for i, p := range r.Line {
		if w := l.waiters[p.Owner]; w != nil {
			w.round = l.rounds
			w.stands(position{i + 1, holder.Owner}, holder, now)
		}
	}
	for owner, w := range l.waiters {
		if w.round == l.rounds {
			continue
		}
		if owner == holder.Owner {
			w.hold = holder
		}
		w.at = now
		l.remove(w)
	}
	l.watch(holder, now)
}

// remove takes out a waiter that stands in line no more, whatever the reason.
func (l *line) remove(w *waiter) {
	delete(l.waiters, w.request.Owner)
	w.out = true
	w.rouse()
}

// dismiss ends the wait of the owner, if it waits.
func (l *line) dismiss(owner string, why error) {
	if w := l.waiters[owner]; w != nil {
		w.err = why
		l.remove(w)
	}
}

// watch has the timer go off when the lease of the holder is over. A timer that
// will go off earlier, because the lease was renewed since, is left as it is: it
// is set again then.
func (l *line) watch(holder rule.Hold, now clock.Instant) {
	switch {
	case len(l.waiters) == 0:
		l.timer.Stop()
		l.armed = false
	case holder.Owner == "":
		// The lock is left to one who barges, and who looks after the line if it
		// does not take it.
	case !l.armed || holder.Expiry < l.due:
		l.armed, l.due = true, holder.Expiry
		l.timer.Reset(max(l.least, holder.Expiry.Sub(now)))
	}
}

// expired is what the timer of l does. It hands the lock on if that is due.
func (s *Store) expired(name string, l *line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lines[name] != l {
		return
	}
	now := s.clock.Now()
	l.armed = false
	if now < l.due {
		// The store's clock is not the timer's, and goes slower. It is not
		// to be asked all the time when it is about to come so far.
		const pause = 10 * time.Millisecond
		l.least = pause
	}
	s.keep(name, s.alive(name, now), now) // which also sets the timer again
	l.least = 0
}
