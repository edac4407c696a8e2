package redisstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// changer is what makes a Store or a Cluster a *store.Store. The functions are those of the
// store.
type changer struct {
	check      func(ctx context.Context) error
	newEncoder func() script.Encoder
	askLock    askFunc
	// several is the driver of a store with several servers, and otherwise nil: the lock is on
	// one server, so one answer settles a change of it.
	several *driver.Driver[*script.Command]
}

// askFunc sends a command to the server that has the lock called name, and returns the answer
// and the server's name.
type askFunc func(ctx context.Context, name string, c *script.Command) (script.Reply, string)

// Downgrade implements driver.Engine.
func (c changer) Downgrade(ctx context.Context, r store.Lease) (store.Grant, error) {
	if err := c.check(ctx); err != nil {
		return store.Grant{}, err
	}
	if c.several != nil {
		return driver.Downgrade(ctx, c.several, r)
	}
	e := c.newEncoder()
	did, err := changeHeld(ctx, c.askLock, e.Downgrade(r), "downgrade", r)
	return store.Grant{Token: did.Token, Slot: did.Slot}, err
}

// Resize implements driver.Engine. A semaphore with one permit is a mutex. While that is held,
// it gets no more permits: the error matches store.ErrUnsupported. So does the error of a store
// with several servers: none of them knows how many permits are held, and one that was away
// would go on with the number before.
func (c changer) Resize(ctx context.Context, name string, from, to store.Kind) error {
	if err := c.check(ctx); err != nil {
		return err
	}
	if c.several != nil {
		return fmt.Errorf("%w: resize %q: over several Redis servers a semaphore keeps its number of permits: use a semaphore with another name for another number (on one server the number can change)", store.ErrUnsupported, name)
	}
	e := c.newEncoder()
	_, err := changeHeld(ctx, c.askLock, e.Resize(name, from, to), "resize", store.Lease{Name: name, Kind: from})
	if kind, ok := errors.AsType[*store.KindError](err); ok && kind.InUse.IsMutex() && from.IsMutex() {
		return fmt.Errorf("%w: resize %q: it was acquired with one permit, which makes it a mutex on Redis: release it first", store.ErrUnsupported, name)
	}
	return err
}

// changeHeld has the server do one change to the lock of r.
func changeHeld(ctx context.Context, ask askFunc, c *script.Command, op string, r store.Lease) (script.Change, error) {
	reply, node := ask(ctx, r.Name, c)
	did := reply.Changed()
	kind, mismatch := errors.AsType[*store.KindError](did.Said.Err)
	switch {
	case did.Said.Outcome == store.Granted:
		return did, nil
	case did.Said.Outcome == store.Absent:
		return did, fmt.Errorf("%s %q: %w", op, r.Name, store.ErrNotHeld)
	case mismatch:
		return did, &store.KindError{Name: r.Name, Asked: r.Kind, InUse: kind.InUse, Holder: kind.Holder}
	}
	did.Said.Node = node
	err := error(&store.QuorumError{Op: op, Name: r.Name, Need: 1, Nodes: []store.NodeOutcome{did.Said}})
	if ctx.Err() != nil {
		err = fmt.Errorf("%w (%w)", ctx.Err(), err)
	}
	return did, err
}
