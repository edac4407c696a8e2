package driver

import (
	"context"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// Calls that no goroutine waits for; see store.Starter. The goroutine that delivers the deciding
// reply calls a function with the outcome.

// StartAcquire begins an Acquire. The caller calls Flush.
func (k *Driver[P]) StartAcquire(ctx context.Context, r store.AcquireRequest, done func(store.Grant, error)) {
	a := k.beginAcquire(r)
	a.ctx, a.done = ctx, done
	a.users++ // this function
	a.askAllLocked(Question{Op: quorum.Acquire, Lease: a.r.Lease})
	a.doneLocked()
}

// StartRelease begins a Release. The caller calls Flush.
func (k *Driver[P]) StartRelease(r store.ReleaseRequest, done func(error)) {
	b, err := k.beginRelease(r)
	if err != nil {
		done(err)
		return
	}
	b.done = done
	b.users++ // this function
	b.putAllLocked()
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

// endLocked returns the function that gets the outcome of a started attempt which has just got its
// verdict, and that outcome. It ends the caller's use of the attempt.
func (a *attempt[P]) endLocked() (done func(store.Grant, error), g store.Grant, err error) {
	if a.done == nil || a.core.Verdict() == quorum.Open {
		return nil, g, nil
	}
	g, err = a.resultLocked(a.ctx)
	done, a.done, a.ctx = a.done, nil, nil
	a.users--
	return done, g, err
}

// endLocked is as that of an attempt.
func (b *ballot[P]) endLocked() (done func(error), err error) {
	if b.done == nil || b.open > 0 {
		return nil, nil
	}
	err = b.resultLocked(context.Background(), 0)
	done, b.done = b.done, nil
	b.users--
	return done, err
}
