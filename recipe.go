package leasehold

import (
	"context"
	"sync/atomic"
	"time"
)

// recipe is what a Lock says of the leases that it makes.
type recipe struct {
	c    *core
	name string
	take claim // what a lease takes of it, unless the options say otherwise
	o    LockOptions
	call call
	// unrenewed is set if the lease is renewed for a while only, until it is held with others.
	unrenewed bool
}

// call is what one call of Acquire, Try or Do adds to a recipe, for the observer and traces.
type call struct {
	number uint64
	trace  string
}

// calls is how many calls were numbered in this process.
var calls atomic.Uint64

// calledWith returns r for a call with ctx.
func (r *recipe) calledWith(ctx context.Context) *recipe {
	if r.c.observe == nil && r.c.trace == nil {
		return r
	}
	called := *r
	called.call.number = calls.Add(1)
	if r.c.trace != nil {
		called.call.trace = r.c.trace(ctx)
	}
	return &called
}

// with returns a copy of r in which the fields set in o replace those of r.
func (r *recipe) with(o LockOptions) *recipe {
	merged := *r
	merged.o = r.o.merge(o)
	return &merged
}

// delay is the pause after the try-th attempt.
func (r *recipe) delay() func(try int) time.Duration {
	if r.o.RetryDelay != nil {
		return r.o.RetryDelay
	}
	return r.c.delay
}
