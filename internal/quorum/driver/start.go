package driver

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// Calls that no goroutine waits for; see store.Starter. The goroutine that delivers the deciding
// reply calls a function with the outcome, and a timer steps the machine when that asks for a tick.

// StartAcquire begins an Acquire. The caller calls Flush.
func (k *Driver[P]) StartAcquire(ctx context.Context, r store.AcquireRequest, done func(store.Grant, error)) {
	a := k.beginAcquire(r)
	a.mu.Lock()
	a.ctx, a.done = ctx, done
	a.users++ // this function
	a.putAllLocked(Question{Op: quorum.Acquire, Lease: a.r.Lease})
	tickAt(a.ticker, &a.core, a.start)
	a.doneLocked()
}

// StartRelease begins a Release. The caller calls Flush.
func (k *Driver[P]) StartRelease(r store.ReleaseRequest, done func(error)) {
	b, err := k.beginRelease(r)
	if err != nil {
		done(err)
		return
	}
	b.mu.Lock()
	b.done = done
	b.users++ // this function
	b.putAllLocked()
	tickAt(b.ticker, &b.votes[0], b.start)
	b.doneLocked()
}

// Flush sends the calls that were started.
func (k *Driver[P]) Flush() {
	k.flush()
	for _, n := range k.Nodes {
		if n, ok := n.(InlineReader); ok {
			n.Listen()
		}
	}
}

// tickAt has a timer fire when a machine next asks for a tick.
func tickAt(t *time.Timer, m interface{ Next() (clock.Instant, bool) }, now clock.Instant) {
	if at, ok := m.Next(); ok {
		t.Reset(at.Sub(now))
	}
}

// stoppedTicker returns a timer that calls tick, and is not set.
func stoppedTicker(tick func()) *time.Timer {
	t := time.AfterFunc(time.Hour, tick)
	t.Stop()
	return t
}

// tick is called by the ticker. The call may have just ended.
func (a *attempt[P]) tick() {
	a.mu.Lock()
	if a.done == nil {
		a.mu.Unlock()
		return
	}
	a.users++ // this function
	now := a.k.Clock.Now()
	a.applyLocked(quorum.Event{Kind: quorum.Tick}, now)
	tickAt(a.ticker, &a.core, now)
	a.doneLocked()
}

// endLocked returns the function that gets the outcome of a started attempt which has just got its
// verdict, and that outcome. It ends the caller's use of the attempt.
func (a *attempt[P]) endLocked() (done func(store.Grant, error), g store.Grant, err error) {
	if a.done == nil || a.core.Verdict() == quorum.Open {
		return nil, g, nil
	}
	a.ticker.Stop()
	g, err = a.resultLocked(a.ctx)
	done, a.done, a.ctx = a.done, nil, nil
	a.users--
	return done, g, err
}

// tick is as that of an attempt.
func (b *ballot[P]) tick() {
	b.mu.Lock()
	if b.done == nil {
		b.mu.Unlock()
		return
	}
	b.users++ // this function
	now := b.k.Clock.Now()
	b.applyLocked(0, quorum.Event{Kind: quorum.Tick}, now)
	tickAt(b.ticker, &b.votes[0], now)
	b.doneLocked()
}

// endLocked is as that of an attempt.
func (b *ballot[P]) endLocked() (done func(error), err error) {
	if b.done == nil || b.open > 0 {
		return nil, nil
	}
	b.ticker.Stop()
	err = b.resultLocked(context.Background(), 0)
	done, b.done = b.done, nil
	b.users--
	return done, err
}
