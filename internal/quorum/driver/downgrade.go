package driver

import (
	"context"
	"fmt"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// Downgrade makes the writer r, which has been checked, a reader; see *store.Store. It is
// an acquire by an owner that has the lock: the reader's token is confirmed, so that it is
// larger than the writer's also for readers that join at other nodes. An attempt that is lost
// releases nothing, since the writer's lease may still be on a majority.
func Downgrade[P any](ctx context.Context, k *Driver[P], r store.Lease) (store.Grant, error) {
	start := k.Clock.Now()
	a := k.newAttempt(store.WaitRequest{Lease: r}, start)
	a.keeps = true
	a.core.Begin(k.config(r), r.TTL, start)
	a.askUnlock(Question{Op: quorum.Acquire, Lease: r, Downgrade: true})
	await(ctx, nil, a.over, r.TTL, a.step)
	a.mu.Lock()
	defer a.doneLocked()
	if a.core.Verdict() == quorum.Won {
		a.r.Weight = 1
		return a.grantLocked(), nil
	}
	nodes := describe(k.Nodes, a.reports, &a.core)
	c := k.config(r)
	var mayHold quorum.Set
	for i, n := range nodes {
		if n.Outcome != store.Absent {
			mayHold |= quorum.SetOf(i)
		}
	}
	if !c.HasQuorum(mayHold) {
		return store.Grant{}, fmt.Errorf("downgrade %q: %w", r.Name, store.ErrNotHeld)
	}
	if err := kindErrorOf(r, nodes); err != nil {
		return store.Grant{}, err
	}
	err := error(&store.QuorumError{Op: "downgrade", Name: r.Name, Need: quorum.Majority(len(nodes)), Nodes: nodes})
	if ctx.Err() != nil {
		err = fmt.Errorf("%w (%w)", ctx.Err(), err)
	}
	return store.Grant{}, err
}
