package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/cluster"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/fleet"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/route"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// clusterEngine keeps locks on a Redis Cluster, as an engine with one voter does: its router.
type clusterEngine struct {
	*engine // has no nodes of its own
	r       *route.Router
}

// openClusterEngine connects to the cluster that url names.
func openClusterEngine(ctx context.Context, url string, o *Options) (*clusterEngine, error) {
	seeds, opts, mostTTL, err := config.ParseCluster(url, o.settings())
	if err != nil {
		return nil, err
	}
	s := &engine{mostTTL: cmp.Or(mostTTL, config.LongestTTL)}
	s.Init(opts)
	r := route.New(&s.Shared, seeds)
	s.Voters, s.all, s.prepare, s.askLock = []fleet.Voter{r}, r.AllMembers, r.Prepare, r.Ask
	s.refuse = func(r store.Lease) error {
		return fmt.Errorf("%w: lock %q requires %v, but a Redis Cluster guarantees %v at most, because a promoted replica may not know of the lock: use independent servers", store.ErrUnsupported, r.Name, r.Require, s.Class)
	}
	c := &clusterEngine{s, r}
	if err := r.Start(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Caps implements driver.Engine. One server decides about each lock.
func (c *clusterEngine) Caps() store.Caps {
	return store.Caps{
		Engine: "redis-cluster", Nodes: 1, Quorum: 1,
		MaxTTL: c.mostTTL, Reach: "network", Clock: "that of the server that has the lock",
		Class:    store.Efficiency,
		Notifies: true, EndsCalls: true,
	}
}

// Close implements driver.Engine.
func (c *clusterEngine) Close() error {
	err := c.engine.Close()
	c.r.Close()
	return err
}

// List implements driver.Engine. It lists the locks of all members. If some of them do not
// answer, it returns the locks of the others and a *store.QuorumError.
func (c *clusterEngine) List(ctx context.Context, prefix string) ([]store.State, error) {
	names := newCatalog(func(key string) (string, bool) {
		name, ok := cluster.NameOf(strings.TrimSuffix(strings.TrimPrefix(key, script.KeyBegin), script.CounterEnd))
		return name, ok && strings.HasPrefix(name, prefix) && store.CheckName(name) == nil
	})
	var cut error
	masters := c.r.Masters()
	few := &store.QuorumError{Op: "list", Store: "redis-cluster", Need: len(masters)} // each lock is on one of them
	for _, n := range masters {
		outcome, err := scan(ctx, n, script.KeyBegin+script.GlobEscape.Replace(clusterPrefix(prefix))+"*"+script.CounterEnd, names)
		if errors.Is(err, store.ErrIncomplete) {
			outcome, cut = store.Granted, fmt.Errorf("%s: %w", n.Address.Host, err)
		}
		said := store.NodeOutcome{Node: n.Address.Host, Outcome: outcome}
		if outcome != store.Granted {
			said.Err = route.WithoutMember(err)
		}
		few.Nodes = append(few.Nodes, said)
	}
	held, failed := c.inspectAll(ctx, slices.Sorted(maps.Keys(names.found)))
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	for name, said := range failed {
		at := slices.Index(masters, c.r.MemberOf(name))
		if at < 0 { // the slot has moved, and the member there has joined meanwhile
			return held, &store.QuorumError{Op: "list", Store: "redis-cluster", Need: 1, Nodes: []store.NodeOutcome{said}}
		}
		if few.Nodes[at].Outcome == store.Granted {
			few.Nodes[at].Outcome, few.Nodes[at].Err = said.Outcome, route.WithoutMember(said.Err)
		}
	}
	if few.Count(store.Granted) < few.Need {
		return held, few
	}
	return held, cut
}

// inspectAll inspects many locks, and returns those that a client of this package holds.
// A script can access one slot only, so each lock takes a command of its own; several are
// in flight at once. It also returns why locks could not be inspected.
func (c *clusterEngine) inspectAll(ctx context.Context, names []string) (held []store.State, failed map[string]store.NodeOutcome) {
	states, errs := make([]store.State, len(names)), make([]error, len(names))
	next := make(chan int)
	var all sync.WaitGroup
	for range min(listAtOnce, len(names)) {
		all.Go(func() {
			for i := range next {
				states[i], errs[i] = c.Inspect(ctx, names[i])
			}
		})
	}
	for i := range names {
		next <- i
	}
	close(next)
	all.Wait()
	failed = map[string]store.NodeOutcome{}
	for i, state := range states {
		switch q, ok := errors.AsType[*store.QuorumError](errs[i]); {
		case ok && q.Count(store.WrongType) > 0: // the key has something that is not a lock
		case ok:
			failed[names[i]] = q.Nodes[0]
		case errs[i] != nil:
			failed[names[i]] = store.NodeOutcome{Outcome: store.Pending, Err: errs[i]}
		case state.Held && !state.Holder.Foreign:
			state.Queue, state.Broken = nil, nil
			held = append(held, state)
		}
	}
	return held, failed
}

// clusterPrefix returns the part of a prefix with which the keys of all matching locks
// begin.
func clusterPrefix(prefix string) string {
	if at := strings.IndexAny(prefix, "%}"); at >= 0 {
		return prefix[:at]
	}
	return prefix
}
