package adaptertest

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/driver"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

// ErrDown is what the calls of a Cut return while it is down.
var ErrDown = errors.New("the store is down")

// Cut is a store that one client cannot use while it is down: calls fail at once.
type Cut struct {
	*store.Store
	Near *store.Store // the same locks, for the clients that are not cut off
	Down atomic.Bool
}

// NewCut returns a store in memory that is up, for the time of a test. Its clock is now, or
// that of the machine if now is nil.
func NewCut(t testing.TB, now clock.Clock) *Cut {
	s := memstore.New(&memstore.Options{Clock: now})
	t.Cleanup(func() { s.Close() })
	return CutOff(s)
}

// CutOff returns a store with the locks of s.
func CutOff(s *store.Store) *Cut {
	c := &Cut{Near: s}
	c.Store = store.New(&cuttable{s.Engine(), &c.Down})
	return c
}

type cuttable struct {
	driver.Engine
	down *atomic.Bool
}

// Caps implements driver.Engine: without a queue, every attempt is an Acquire.
func (c *cuttable) Caps() store.Caps {
	caps := c.Engine.Caps()
	caps.NoQueue = true
	return caps
}

// Acquire implements driver.Engine.
func (c *cuttable) Acquire(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
	if c.down.Load() {
		return store.Grant{}, ErrDown
	}
	return c.Engine.Acquire(ctx, r)
}

// Renew implements driver.Engine.
func (c *cuttable) Renew(ctx context.Context, leases []store.Lease) []error {
	if c.down.Load() {
		return slices.Repeat([]error{ErrDown}, len(leases))
	}
	return c.Engine.Renew(ctx, leases)
}

// Release implements driver.Engine.
func (c *cuttable) Release(ctx context.Context, r store.ReleaseRequest) error {
	if c.down.Load() {
		return ErrDown
	}
	return c.Engine.Release(ctx, r)
}
