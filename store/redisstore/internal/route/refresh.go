package route

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/cluster"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/node"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// Any member can be asked for the slot map. A stale map is safe: a member that does not
// have a slot redirects the client. But a member that is gone cannot redirect, and a
// waiter whose lock has moved would wait for a push from the wrong server. So the map is
// refreshed whenever an answer contradicts it, and regularly while there are waiters. A slot
// that has moved away and back is not seen in the map: the epoch of the cluster shows it.

const (
	// refreshEvery is the interval between refreshes while there are waiters.
	refreshEvery = time.Second
	// refreshPause is the least time between two refreshes. It doubles up to a second while
	// all of them fail.
	refreshPause = 50 * time.Millisecond
	// retiring is how long a member that has lost all its slots may take to answer what
	// is in flight.
	retiring = time.Second
)

var slotsCommand, epochCommand = &script.Command{Bytes: cluster.SlotsCommand}, &script.Command{Bytes: cluster.InfoCommand}

// requestRefresh requests a refresh of the slot map soon.
func (r *Router) requestRefresh() {
	select {
	case r.refreshWanted <- struct{}{}:
	default:
	}
}

// refreshLoop is the refresh loop. It runs in one goroutine and pauses after each refresh.
func (r *Router) refreshLoop() {
	tick := time.NewTicker(refreshEvery)
	defer tick.Stop()
	rest := time.NewTimer(0)
	defer rest.Stop()
	for failures := 0; ; {
		select {
		case <-r.s.Closing:
			return
		case <-rest.C:
		}
		for wait := true; wait; {
			select {
			case <-r.s.Closing:
				return
			case <-r.refreshWanted:
				wait = false
			case <-tick.C:
				wait = r.s.Waiting.Load() == 0
			}
		}
		pause := refreshPause
		if slotMap, epoch, _, err := r.fetchSlotMap(r.ctx); err == nil {
			failures = 0
			r.installSlotMap(slotMap, epoch)
		} else if failures++; r.ctx.Err() == nil {
			pause = min(refreshPause<<min(failures, 5), time.Second)
			r.s.Config.Logger.Debug("cannot refresh the cluster's slot map", "err", err)
		}
		rest.Reset(pause)
	}
}

// fetchSlotMap asks one member after the other for the slot map. It starts with a different member
// each time, because one that was cut off from the cluster keeps reporting a stale map. A member
// that is connected also reports the epoch, if the user may read it; otherwise that is 0.
// The error comes with the outcome of each member.
func (r *Router) fetchSlotMap(ctx context.Context) (slotMap []cluster.Range, epoch uint64, nodes []store.NodeOutcome, err error) {
	connected, others := r.known()
	for _, n := range connected {
		p := make(node.Poll, 1)
		said := driver.PutOutcome(n.Enqueue(node.Call{Command: slotsCommand, Timeout: r.s.NodeTimeout(r.s.Config.MaxTTL), Poll: p}, false))
		if said.Err == nil {
			select {
			case a := <-p:
				if said.Err = a.Err; a.Err == nil {
					if slotMap, said.Err = cluster.ParseSlotMap(a.Value, n.Address.Host); said.Err == nil {
						return slotMap, r.fetchEpoch(ctx, n), nil, nil
					}
				}
			case <-ctx.Done():
				return nil, 0, nodes, ctx.Err()
			}
		}
	}
	for _, a := range others {
		if ctx.Err() != nil {
			break
		}
		slotMap, err := cluster.Fetch(ctx, a, &r.s.Config)
		if err == nil {
			return slotMap, 0, nil, nil
		}
		outcome, err := membership.Classify(err, r.s.Config.ConnectTimeout)
		nodes = append(nodes, store.NodeOutcome{Node: a.Host, Outcome: outcome, Err: err})
	}
	return nil, 0, nodes, cluster.ErrNoSlotMap
}

// fetchEpoch asks a member for the epoch of the cluster; 0 if it does not say. A user that may not
// read it is not asked for again.
func (r *Router) fetchEpoch(ctx context.Context, n *node.Node) uint64 {
	if r.noEpoch {
		return 0
	}
	said := n.Ask(ctx, epochCommand)
	r.noEpoch = script.IsDenied(said.Err)
	return cluster.ParseEpoch(said.Value)
}

// installSlotMap installs a slot map. If a slot has moved, all waiters ask again: their places
// moved with the locks, and pushes from the new server did not reach them.
func (r *Router) installSlotMap(slotMap []cluster.Range, epoch uint64) {
	has, gone, moved := r.install(slotMap, epoch)
	for _, n := range gone {
		r.all.Go(func() { r.retire(n) })
	}
	for n := range has {
		n.Resubscribe()
	}
	if moved {
		r.s.Driver.OnPushLost(0)
	}
}

// retire closes a member once it has nothing more to answer.
func (r *Router) retire(n *node.Node) {
	ctx, cancel := context.WithTimeout(r.ctx, retiring)
	defer cancel()
	n.Drain(ctx)
	r.inherit(n)
}

// inherit sends a member's retained releases to the members that have its slots now.
func (r *Router) inherit(n *node.Node) {
	for _, q := range n.Unreleased() {
		c := node.Call{Command: r.s.Encode(q, nil), Timeout: r.s.NodeTimeout(q.Lease.TTL), To: node.Nobody{}, Tag: int(quorum.Release)}
		r.Enqueue(c, false) // a member that refuses the release retains it
	}
}

// Start gets the first slot map, and has it refreshed from then on.
func (r *Router) Start(ctx context.Context) error {
	slotMap, epoch, nodes, err := r.fetchSlotMap(ctx)
	switch {
	case err == nil:
		r.installSlotMap(slotMap, epoch)
		r.all.Go(r.refreshLoop)
		return nil
	case ctx.Err() != nil:
		return errors.Join(ctx.Err(), err)
	}
	return &store.QuorumError{Op: "open", Store: "redis-cluster", Need: 1, Nodes: nodes}
}
