package store

import (
	"context"
	"time"
)

// Engine is what a Store works on; package driver says how to write one. Every method keeps the
// contract of the Store's method of the same name. Requests are valid when they arrive: the Store
// has checked names, owners, kinds, weights and TTLs by Caps. Renew is called with one lease or more.
//
// No call begins after Close, which is called once, when the calls before it have returned: their
// contexts have ended by then (but see Caps.Timeout and Caps.EndsCalls). Close waits for what the
// engine itself has under way, for a bounded time.
type Engine interface {
	Acquire(ctx context.Context, r AcquireRequest) (Grant, error)
	Renew(ctx context.Context, leases []Lease) []error
	Release(ctx context.Context, r ReleaseRequest) error
	Wait(ctx context.Context, r WaitRequest, reason func(error)) (Grant, error)
	ReleaseAndRejoin(ctx context.Context, r ReleaseRequest, next WaitRequest) (queued bool, err error)
	BreakLease(ctx context.Context, r BreakRequest) (left time.Duration, err error)
	NotifyBroken(f func(owner string)) (stop func())
	Downgrade(ctx context.Context, r Lease) (Grant, error)
	Resize(ctx context.Context, name string, from, to Kind) error
	Inspect(ctx context.Context, name string) (State, error)
	List(ctx context.Context, prefix string) ([]State, error)
	Caps() Caps
	Close() error
}
