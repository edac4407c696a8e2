package redisstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// Downgrade implements driver.Engine.
func (s *engine) Downgrade(ctx context.Context, r store.Lease) (store.Grant, error) {
	if s.Size > 1 {
		return driver.Downgrade(ctx, &s.Driver, r)
	}
	e := s.Encoder()
	did, err := s.changeHeld(ctx, e.Downgrade(r), "downgrade", r)
	return store.Grant{Token: did.Token, Slot: did.Slot}, err
}

// Resize implements driver.Engine. A semaphore with one permit is a mutex. While that is held,
// it gets no more permits: the error matches store.ErrUnsupported. So does the error of a store
// with several servers: none of them knows how many permits are held, and one that was away
// would go on with the number before.
func (s *engine) Resize(ctx context.Context, name string, from, to store.Kind) error {
	if s.Size > 1 {
		return fmt.Errorf("%w: resize %q: over several Redis servers a semaphore keeps its number of permits: use a semaphore with another name for another number (on one server the number can change)", store.ErrUnsupported, name)
	}
	e := s.Encoder()
	_, err := s.changeHeld(ctx, e.Resize(name, from, to), "resize", store.Lease{Name: name, Kind: from})
	if kind, ok := errors.AsType[*store.KindError](err); ok && kind.InUse.IsMutex() && from.IsMutex() {
		return fmt.Errorf("%w: resize %q: it was acquired with one permit, which makes it a mutex on Redis: release it first", store.ErrUnsupported, name)
	}
	return err
}

// changeHeld has the server do one change to the lock of r.
func (s *engine) changeHeld(ctx context.Context, c *script.Command, op string, r store.Lease) (script.Change, error) {
	reply, node := s.askLock(ctx, r.Name, c)
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
