package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/cluster"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// clusterEngine keeps locks on a Redis Cluster.
type clusterEngine struct {
	changer
	s *engine // has no nodes of its own
	r *router
}

// openClusterEngine connects to the cluster that url names.
func openClusterEngine(ctx context.Context, url string, o *Options) (*clusterEngine, error) {
	seeds, opts, mostTTL, err := config.ParseCluster(url, o.settings())
	if err != nil {
		return nil, err
	}
	s := newBareStore(opts)
	s.mostTTL = cmp.Or(mostTTL, config.LongestTTL)
	r := newRouter(&s.fleet, seeds)
	s.voters, s.topology = []voter{r}, clustered{r: r}
	s.class, s.channel = store.Efficiency, r.clusterChannel(unsharded)
	s.driver = driver.Driver[*script.Command]{Nodes: []driver.Node[*script.Command]{r}, Encode: s.encode, NodeTimeout: s.nodeTimeout, Clock: opts.Clock, Wall: s.wall, Jitter: opts.Jitter(), Logger: opts.Logger, Coalesce: s.manyInFlight, Closing: s.closing}
	c := &clusterEngine{s: s, r: r}
	s.changer = changer{check: s.usable, newEncoder: s.encoder, askLock: askMember(r)}
	c.changer = s.changer
	if err := r.loadSlotMap(ctx); err != nil {
		c.Close()
		return nil, err
	}
	r.all.Go(r.refreshLoop)
	return c, nil
}

// Caps implements driver.Engine. One server decides about each lock.
func (c *clusterEngine) Caps() store.Caps {
	return store.Caps{
		Engine: "redis-cluster", Nodes: 1, Quorum: 1,
		MaxTTL: c.s.mostTTL, Reach: "network", Clock: "that of the server that has the lock",
		Class:    store.Efficiency,
		Notifies: true, EndsCalls: true,
	}
}

// Close implements driver.Engine. It does what Store.Close does.
func (c *clusterEngine) Close() error {
	err := c.s.Close()
	c.r.close()
	return err
}

// check refuses requests that require more than a cluster can guarantee.
func (c *clusterEngine) check(r store.Lease) error {
	if r.Require > store.Efficiency {
		return fmt.Errorf("%w: lock %q requires %v, but a Redis Cluster guarantees %v at most, because a promoted replica may not know of the lock: use independent servers", store.ErrUnsupported, r.Name, r.Require, store.Efficiency)
	}
	return nil
}

// Acquire implements driver.Engine.
func (c *clusterEngine) Acquire(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
	if err := c.check(r.Lease); err != nil {
		return store.Grant{}, err
	}
	c.r.prepare(ctx, r.Name)
	return c.s.Acquire(ctx, r)
}

// Wait implements driver.Engine. The server that has the lock keeps its queue of waiters,
// which moves with the lock, and hands the lock over as Store does.
func (c *clusterEngine) Wait(ctx context.Context, r store.WaitRequest, reason func(error)) (store.Grant, error) {
	if err := c.check(r.Lease); err != nil {
		return store.Grant{}, err
	}
	c.r.prepare(ctx, r.Name)
	return c.s.Wait(ctx, r, reason)
}

// ReleaseAndRejoin implements driver.Engine.
func (c *clusterEngine) ReleaseAndRejoin(ctx context.Context, r store.ReleaseRequest, next store.WaitRequest) (queued bool, err error) {
	if err := c.check(next.Lease); err != nil {
		return false, err
	}
	r.Lease = plain(r.Lease)
	return c.s.ReleaseAndRejoin(ctx, r, next)
}

// Renew implements driver.Engine. It asks all members at once, each about its own locks.
func (c *clusterEngine) Renew(ctx context.Context, leases []store.Lease) []error {
	if slices.ContainsFunc(leases, func(r store.Lease) bool { return r.Require > store.Efficiency }) {
		leases = slices.Clone(leases)
		for i := range leases {
			leases[i] = plain(leases[i])
		}
	}
	return c.s.Renew(ctx, leases)
}

// Release implements driver.Engine.
func (c *clusterEngine) Release(ctx context.Context, r store.ReleaseRequest) error {
	r.Lease = plain(r.Lease)
	return c.s.Release(ctx, r)
}

// plain returns the lease with the requirement lowered to what a cluster gives. A request that
// required more was never granted, so nothing is lost.
func plain(r store.Lease) store.Lease {
	r.Require = store.Efficiency
	return r
}

// Inspect implements driver.Engine.
func (c *clusterEngine) Inspect(ctx context.Context, name string) (store.State, error) {
	if err := c.s.usable(ctx); err != nil {
		return store.State{Name: name}, err
	}
	c.r.prepare(ctx, name)
	return c.s.Inspect(ctx, name)
}

// BreakLease implements driver.Engine. The server that has the lock breaks the lease, of a
// lock of every kind. If a replica that does not know of the break takes over, the lease can
// be renewed again, and has to be broken again. While the slot of the lock is being moved,
// BreakLease tries again for five seconds. Locks of other kinds of clients are refused with
// store.ErrUnsupported.
func (c *clusterEngine) BreakLease(ctx context.Context, r store.BreakRequest) (left time.Duration, err error) {
	if err := c.s.usable(ctx); err != nil {
		return 0, err
	}
	c.r.prepare(ctx, r.Name)
	return c.s.BreakLease(ctx, r)
}

// NotifyBroken implements driver.Engine. The servers pass the messages on to each other,
// so it does not matter to which of them the holder's client is connected. Clients that may not
// use the channel, or whose servers do not know version 3 of the protocol, are not notified.
func (c *clusterEngine) NotifyBroken(f func(owner string)) (stop func()) { return c.s.NotifyBroken(f) }

// prepare connects to the member that has a lock if nothing has been sent to it yet:
// connecting may take longer than the timeout for an answer.
func (r *router) prepare(ctx context.Context, name string) {
	n := r.memberFor(cluster.SlotOf(cluster.KeyOf(name)))
	if n == nil {
		return
	}
	n.Mu.Lock()
	tried := n.TriedLocked()
	n.Mu.Unlock()
	if !tried {
		n.askOne(ctx, pingCommand)
	}
}

// askFor sends a command to the member that has the command's slot, and waits for the
// answer.
func (r *router) askFor(ctx context.Context, c *script.Command) script.Reply {
	return askBy(ctx, r.put, call{command: c, timeout: r.s.nodeTimeout(r.s.o.MaxTTL)})
}

// askMember returns the askFunc of a cluster.
func askMember(r *router) askFunc {
	return func(ctx context.Context, name string, c *script.Command) (script.Reply, string) {
		r.prepare(ctx, name)
		return r.askFor(ctx, c), r.Addr()
	}
}

// clusterPrefix returns the part of a prefix with which the keys of all matching locks
// begin.
func clusterPrefix(prefix string) string {
	if at := strings.IndexAny(prefix, "%}"); at >= 0 {
		return prefix[:at]
	}
	return prefix
}
