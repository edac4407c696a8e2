package leasehold

import (
	"context"
	"errors"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// wait asks for the lock until it is granted, tries are used up, ctx ends, or
// an error shows that waiting cannot help. With bound, what is derived from
// the lease's context ends with ctx.
func (c *queues) wait(ctx context.Context, r *recipe, tries int, bound bool) (*Lease, error) {
	mustHave(ctx)
	began := c.started()
	r = r.calledWith(ctx)
	var lease *Lease
	answered, returned := false, false
	defer func() {
		switch {
		case !answered: // a function of the user's ends this goroutine
			c.seeOutcome(ctx, r, began, nil, 0, errEnded)
		case !returned && lease != nil: // the Observer failed
			lease.discard()
		}
	}()
	lease, how, err := c.get(ctx, r, tries, bound, began)
	answered = true
	c.seeOutcome(ctx, r, began, lease, how, err)
	returned = true
	return lease, err
}

// errEnded is the error of Failed if the caller does not live to see any.
var errEnded = errors.New("a function given to the client ended the goroutine that waited for the lock")

// get asks for the lock, or re-enters the lease that ctx carries. It returns how the lease was
// obtained; 0 means by re-entry.
func (c *queues) get(ctx context.Context, r *recipe, tries int, bound bool, began clock.Instant) (*Lease, EventKind, error) {
	t, err := c.termsOf(r)
	if err != nil {
		return nil, 0, err
	}
	if lease, err := c.reenter(ctx, r, t, bound); lease != nil || err != nil {
		return lease, 0, err
	}
	if r.o.Owner != "" && tries != 1 {
		return nil, 0, invalid("a fixed Owner needs a single attempt: use Try, or set Tries to 1")
	}
	if !ownerPerAttempt && r.o.Owner == "" {
		r = r.with(LockOptions{Owner: store.NewOwner()})
	}
	if c.waits && tries == 0 && r.o.Owner == "" {
		return c.queueUp(ctx, r, t, bound, began)
	}
	lease, err := c.poll(ctx, r, t, tries, bound, began)
	return lease, Acquired, err
}

// reenter returns another lease of the grant that ctx carries a lease of, or nil if ctx carries
// none that is held and can be re-entered. It returns an error if r wants something else than
// was granted.
func (c *queues) reenter(ctx context.Context, r *recipe, t terms, bound bool) (*Lease, error) {
	if t.anew {
		return nil, nil
	}
	outer := c.carried(ctx, r.name)
	if outer == nil || r.o.Owner != "" && r.o.Owner != outer.Owner() {
		return nil, nil
	}
	if err := t.reenters(outer.h.req, t.require); err != nil {
		return nil, err
	}
	lease := &Lease{reentered: true}
	if !lease.reenter(&outer.share, ctx, bound) {
		return nil, nil
	}
	return lease, nil
}

// carried returns the lease of the lock of that name that ctx carries, or nil. It passes over
// leases that are over.
func (c *core) carried(ctx context.Context, name string) *Lease {
	for {
		lease, _ := ctx.Value(leaseKey{c, name}).(*Lease)
		if lease == nil || lease.Err() == nil {
			return lease
		}
		ctx = lease.base
	}
}
