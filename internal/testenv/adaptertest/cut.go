package adaptertest

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

// ErrDown is what the calls of a Cut return while it is down.
var ErrDown = errors.New("the store is down")

// Cut is a store that one client cannot use while it is down: calls fail at once.
type Cut struct {
	store.Store
	Down atomic.Bool
}

// NewCut returns a store in memory that is up, for the time of a test. Its clock is now, or
// that of the machine if now is nil.
func NewCut(t testing.TB, now clock.Clock) *Cut {
	s := memstore.New(&memstore.Options{Clock: now})
	t.Cleanup(func() { s.Close() })
	return &Cut{Store: s}
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
