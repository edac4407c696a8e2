package adaptertest

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/leasehold-dev/leasehold/store"
)

// ErrDown is what the calls of a Cut return while it is down.
var ErrDown = errors.New("the store is down")

// Cut is a store that one client cannot use while it is down: calls fail at once.
type Cut struct {
	store.Store
	Down atomic.Bool
}

// Acquire implements store.Store.
func (c *Cut) Acquire(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
	if c.Down.Load() {
		return store.Grant{}, ErrDown
	}
	return c.Store.Acquire(ctx, r)
}

// Renew implements store.Store.
func (c *Cut) Renew(ctx context.Context, leases []store.Lease) []error {
	if c.Down.Load() {
		return slices.Repeat([]error{ErrDown}, len(leases))
	}
	return c.Store.Renew(ctx, leases)
}

// Release implements store.Store.
func (c *Cut) Release(ctx context.Context, r store.ReleaseRequest) error {
	if c.Down.Load() {
		return ErrDown
	}
	return c.Store.Release(ctx, r)
}
