package leasehold

import (
	"context"
	"log/slog"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// started is when a wait began, as far as somebody observes it.
func (c *Client) started() clock.Instant {
	if c.observe == nil {
		return 0
	}
	return c.clock.Now()
}

// listens says whether anybody wants to know why the lock is waited for.
func (l *Lock) listens() bool { return l.o.OnWait != nil || l.c.observe != nil }

// seeWaiting tells the lock's own listener why it is waited for, and the observer
// if that is for another cause than told, which it updates.
func (l *Lock) seeWaiting(ctx context.Context, began clock.Instant, reason error, told *cause) {
	if l.o.OnWait != nil {
		l.o.OnWait(reason)
	}
	c := causeOf(reason)
	if l.c.observe == nil || c == *told {
		return
	}
	*told = c
	l.c.observe(ctx, Event{Kind: Waiting, Name: l.name, Position: c.position, Waited: l.c.clock.Now().Sub(began), Err: reason})
}

// seeOutcome tells the observer how a wait has ended; how is 0 for a re-entry.
func (l *Lock) seeOutcome(ctx context.Context, began clock.Instant, lease *Lease, how EventKind, err error) {
	if l.c.observe == nil {
		return
	}
	e := Event{Kind: how, Name: l.name, Waited: l.c.clock.Now().Sub(began), Err: err}
	switch {
	case err != nil:
		e.Kind = Failed
	case how == 0:
		return
	default:
		e.Owner, e.Token = lease.Owner(), lease.Token()
	}
	l.c.observe(ctx, e)
}

// ended is what the observer is told of the end of a hold.
func (l *Lease) ended(kind EventKind, held time.Duration, err error) Event {
	r := &l.h.req
	return Event{Kind: kind, Name: r.Name, Owner: r.Owner, Token: l.token, Held: held, Err: err}
}

// observeLossLocked has the observer told of the loss of l, by a goroutine of the
// package's own.
func (c *Client) observeLossLocked(l *Lease, held time.Duration, err error) {
	h, e := l.h, l.ended(Lost, held, err)
	h.telling = true
	c.notify.add(func() {
		defer func() {
			c.mu.Lock()
			h.telling = false
			c.mu.Unlock()
		}()
		c.observe(l.base, e)
	})
}

// observeRelease tells the observer that l was released: after its loss, if it is
// still being told of that.
func (l *Lease) observeRelease(err error) {
	c := l.h.c
	if c.observe == nil {
		return
	}
	tell := func() { c.observe(l.base, l.ended(Released, l.held, err)) }
	c.mu.Lock()
	telling := l.h.telling
	if telling {
		c.notify.add(tell)
	}
	c.mu.Unlock()
	if !telling {
		tell()
	}
}

// logLater logs from a goroutine of the package's own, for those who hold a mutex.
func (c *Client) logLater(level slog.Level, msg string, args ...any) {
	if c.logs {
		c.notify.add(func() { c.log.Log(context.Background(), level, msg, args...) })
	}
}
