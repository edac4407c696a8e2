package memstore

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
)

// queue holds the waiters for one lock, so that they can be woken. Their order is
// kept in the lock's record. The store's mutex guards a queue.
type queue struct {
	waiters map[string]*waiter // by owner
	// rounds counts the calls of notify.
	rounds int

	// timer fires when the holder's lease ends, at due or earlier. armed is set
	// while it runs.
	timer *time.Timer
	armed bool
	due   clock.Instant
	// least is the shortest time that the timer is set to.
	least time.Duration
}

// join adds w to the queue for its lock. The caller then asks for a place in the
// record.
func (s *engine) join(w *waiter) error {
	name, owner := w.request.Name, w.request.Owner
	l := s.queues[name]
	if l == nil {
		l = &queue{waiters: make(map[string]*waiter)}
		s.queues[name] = l
	}
	if l.waiters[owner] != nil {
		return fmt.Errorf("%w: owner %s already waits for %q: every attempt needs a new owner", store.ErrInvalid, owner, name)
	}
	if l.timer == nil {
		l.timer = time.AfterFunc(time.Hour, func() { s.expired(name, l) })
		l.timer.Stop()
	}
	l.waiters[owner] = w
	return nil
}

// settled returns the record of the lock, after handing the lock on if its
// lease has expired.
func (s *engine) settled(name string, now clock.Instant) rule.Record {
	r := s.alive(name, now)
	if len(r.Queue) == 0 || r.Spec == rule.Mutex && len(r.Holds) > 0 {
		return r // there is no waiter, or the lock is held
	}
	s.keep(name, r, now)
	return s.records[name]
}

// alive returns the record of the lock without what has expired. It first
// refreshes the place of every waiter: all waiters belong to this process, and a
// waiter that leaves is removed at once, so those that remain are alive.
func (s *engine) alive(name string, now clock.Instant) rule.Record {
	r, l := s.records[name], s.queues[name]
	if l == nil {
		return rule.Expire(r, now)
	}
	r.Queue = slices.Clone(r.Queue)
	for i, p := range r.Queue {
		if w := l.waiters[p.Owner]; w != nil {
			r.Queue[i].Expiry = max(p.Expiry, now.Add(w.request.TTL))
		}
	}
	return rule.Expire(r, now)
}

// notify tells each waiter its new position, removes those that no longer have a
// place in r, and sets the timer for the end of the holder's lease.
func (l *queue) notify(r rule.Record, now clock.Instant) {
	var holder rule.Hold // the one that ends first
	if len(r.Holds) > 0 {
		holder = slices.MinFunc(r.Holds, func(a, b rule.Hold) int { return cmp.Compare(a.Expiry, b.Expiry) })
	}
	l.rounds++
	for i, p := range r.Queue {
		if w := l.waiters[p.Owner]; w != nil {
			w.round = l.rounds
			w.setPosition(position{i + 1, holder.Owner}, holder, now)
		}
	}
	for owner, w := range l.waiters {
		if w.round == l.rounds {
			continue
		}
		if i := slices.IndexFunc(r.Holds, func(h rule.Hold) bool { return h.Owner == owner }); i >= 0 {
			w.hold = r.Holds[i]
		}
		w.at = now
		l.remove(w)
	}
	l.watch(holder, now)
}

// remove removes w, which no longer has a place in the record, and wakes it.
func (l *queue) remove(w *waiter) {
	delete(l.waiters, w.request.Owner)
	w.out = true
	w.signal()
}

// dismiss ends the wait of owner with the error why, if it waits.
func (l *queue) dismiss(owner string, why error) {
	if w := l.waiters[owner]; w != nil {
		w.err = why
		l.remove(w)
	}
}

// watch sets the timer to the end of the holder's lease. A timer that will fire
// earlier, because the lease was renewed, is left alone; expired sets it again.
func (l *queue) watch(holder rule.Hold, now clock.Instant) {
	switch {
	case len(l.waiters) == 0:
		l.timer.Stop()
		l.armed = false
	case !l.armed || holder.Expiry < l.due:
		l.armed, l.due = true, holder.Expiry
		l.timer.Reset(max(l.least, holder.Expiry.Sub(now)))
	}
}

// expired runs when the timer of l fires. It hands the lock on if the lease has
// ended.
func (s *engine) expired(name string, l *queue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queues[name] != l {
		return
	}
	now := s.clock.Now()
	l.armed = false
	if now < l.due {
		// The store's clock is behind the timer's clock. Set the timer for at
		// least a short pause, so that it does not spin.
		const pause = 10 * time.Millisecond
		l.least = pause
	}
	s.keep(name, s.alive(name, now), now) // also sets the timer again
	l.least = 0
}
