package storetest

import (
	"context"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// place is a waiter in the queue. It polls whether it was handed the lock, or can take it.
type place struct {
	store.WaitRequest
	handed clock.Instant
	came   int           // its position when it arrived
	until  clock.Instant // the end of the place
}

func (s *flawed) Wait(ctx context.Context, r store.WaitRequest, reason func(error)) (store.Grant, error) {
	if err := s.require(r.Lease); err != nil {
		return store.Grant{}, err
	}
	return s.waitAt(ctx, &place{WaitRequest: r}, clock.System().Now(), reason)
}

// waitAt waits in place p. Grants count from start.
func (s *flawed) waitAt(ctx context.Context, p *place, start clock.Instant, reason func(error)) (store.Grant, error) {
	told := store.BusyError{Position: -1}
	for first := true; ; first = false {
		if err := ctx.Err(); err != nil && !(!first && s.is("waits do not end with the store")) && !(first && s.is("an ended context is not looked at")) {
			if !s.is("waits that give up keep their place") {
				s.leave(p)
			}
			if s.is("waits that give up return busy") {
				return store.Grant{}, &store.BusyError{Name: p.Name}
			}
			return store.Grant{}, err
		}
		g, busy := s.poll(p, start)
		if busy == nil {
			return g, nil
		}
		if news := busy.Position != told.Position || busy.Holder.Owner != told.Holder.Owner; reason != nil && news && !s.is("waiters are told nothing") {
			told = *busy
			reason(busy)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Millisecond):
		}
	}
}

// poll takes the lock for a waiter, or says why it cannot.
func (s *flawed) poll(p *place, start clock.Instant) (store.Grant, *store.BusyError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.look(s.key(p.Name))
	if s.is("places are not refreshed") {
		l.queue = slices.DeleteFunc(l.queue, func(q *place) bool { return clock.System().Now() >= q.until })
	}
	at := slices.Index(l.queue, p)
	if l.owner == "" && s.mayTake(l, p, at) {
		s.give(l, p.Lease)
		p.handed = clock.System().Now()
		if s.is("tokens repeat after a wait") {
			l.token, l.top = 7, 7
		}
	}
	if s.is("two are granted") || l.owner == p.Owner {
		l.queue = slices.DeleteFunc(l.queue, func(q *place) bool { return q == p })
		return s.granted(l, p, start), nil
	}
	if at < 0 {
		at = len(l.queue)
		l.queue = append(l.queue, p)
		p.came, p.until = at+1, clock.System().Now().Add(p.TTL)
	}
	busy := &store.BusyError{Name: p.Name, Holder: store.DecodeHolder(l.owner, l.meta), ExpiresIn: s.left(l), Position: at + 1}
	switch {
	case s.is("positions stand still"):
		busy.Position = 3
	case s.is("positions never change"):
		busy.Position = p.came
	case s.is("waiters are told of themselves"):
		busy.Holder = store.DecodeHolder(p.Owner, p.Meta)
	}
	return store.Grant{}, busy
}

// mayTake reports whether a waiter at that index in the queue, or outside it (-1), takes a
// free lock.
func (s *flawed) mayTake(l *lock, p *place, at int) bool {
	switch {
	case s.is("a free lock goes to new requests"):
		return false
	case at >= 0 && s.is("expired locks go to new requests"):
		return false
	}
	return at == 0 || len(l.queue) == 0
}

func (s *flawed) granted(l *lock, p *place, start clock.Instant) store.Grant {
	g := store.Grant{Token: l.token, Since: p.handed.Sub(start)}
	switch {
	case s.is("waits end without a token"):
		g.Token = 0
	case s.is("granted before it was asked for"):
		g.Since = -time.Second
	case s.is("grants count from when they are told"):
		g.Since = clock.System().Now().Sub(start)
	case s.is("granted after it was told"):
		g.Since += time.Hour
	}
	return g
}

// handOn hands a released lock to the first waiter.
func (s *flawed) handOn(l *lock) {
	if l.owner != "" || len(l.queue) == 0 || s.is("a free lock goes to new requests") || s.is("released locks go to new requests") {
		return
	}
	next := 0
	if s.is("the last in the queue comes first") {
		next = len(l.queue) - 1
	}
	p := l.queue[next]
	l.queue = slices.Delete(l.queue, next, next+1)
	s.give(l, p.Lease)
	p.handed = clock.System().Now()
	switch {
	case s.is("handing on keeps the token"):
		l.token, l.top = l.token-1, l.top-1
	case s.is("handing on forgets the holder"):
		l.meta = ""
	case s.is("handed leases end early"):
		l.expiry = p.handed.Add(p.TTL / 10)
	}
}

// leave takes p out of the queue, and releases the lock if it was handed to p.
func (s *flawed) leave(p *place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.look(s.key(p.Name))
	l.queue = slices.DeleteFunc(l.queue, func(q *place) bool { return q == p })
	if l.owner == p.Owner && !s.is("waits that give up keep what they were handed") {
		l.owner = ""
		s.handOn(l)
	}
}

// shown returns the queue as Inspect shows it.
func (s *flawed) shown(l *lock) (queue []store.Place) {
	for _, p := range l.queue {
		shown := store.Place{Holder: store.DecodeHolder(p.Owner, p.Meta), ExpiresIn: p.TTL}
		switch {
		case s.is("places have no description"):
			shown.Holder = store.Holder{Owner: p.Owner}
		case s.is("places never end"):
			shown.ExpiresIn = -1
		}
		queue = append(queue, shown)
	}
	switch {
	case s.is("the queue is not shown"):
		return nil
	case s.is("the queue is shown backwards"):
		slices.Reverse(queue)
	case s.is("the holder is shown in the queue") && l.owner != "":
		queue = append(queue, store.Place{Holder: store.Holder{Owner: l.owner}})
	}
	return queue
}
