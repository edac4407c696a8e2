package zkstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/zkstore/internal/zk"
)

// Resize implements driver.Engine. Waiters for the earlier number notice when they look
// next, within a third of their TTL.
func (s *engine) Resize(ctx context.Context, name string, from, to store.Kind) error {
	t, leave, err := s.anyTree(ctx)
	if err == nil {
		defer leave()
		err = t.resize(ctx, name, specOf(from), specOf(to))
	}
	return s.failed(ctx, "resize", name, err)
}

// resize changes the number of permits of a semaphore that is in use.
func (t tree) resize(ctx context.Context, name string, from, to rule.Spec) error {
	dir := t.dir(name)
	for {
		if err := t.Sync(ctx); err != nil {
			return err
		}
		n, ok, err := t.Get(ctx, dir)
		if err != nil || !ok {
			return err
		}
		names, err := t.List(ctx, dir)
		if err != nil {
			return err
		}
		asked, now := queueOf(names), decodeJSON[dirRecord](n.Data)
		q := now.applyTo(asked)
		switch {
		case len(q) == 0 || q[0].spec == to:
			return nil
		case q[0].spec != from:
			holder, ok, err := t.Get(ctx, dir+"/"+q[0].name)
			if err != nil {
				return err
			}
			if !ok {
				continue // it has left since
			}
			rec, ours := decodeRecord(holder.Data)
			h, _ := t.holder(q[0], rec, ours)
			return &store.KindError{Name: name, Asked: kindOf(from), InUse: kindOf(q[0].spec), Holder: h}
		case slices.ContainsFunc(asked, func(c numbered) bool { return c.spec == from && from == rule.Mutex }):
			return fmt.Errorf("%w: lock %q: its holder and its waiters take it for a mutex, and ZooKeeper's other clients may be among them: resize it when it is free", store.ErrUnsupported, name)
		}
		err = t.Do(ctx, zk.Set(dir, now.add(from, to, asked).encode(), n.Version))
		if err == nil || errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		if !errors.Is(err, zk.ErrBadVersion) { // which may come from this very change
			return explain(err, dir)
		}
	}
}
