package stories

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
)

// modelStore is one client's store over modelled nodes: the quorum of the Redis
// store, with other nodes.
type modelStore struct {
	store.Engine // nil: the stories use nothing else
	driver       driver.Driver[driver.Question]
	links        []*modelLink
	quit         chan struct{}
	done         sync.WaitGroup
}

// newModelStore makes the store of a client that reaches the nodes of these
// numbers only.
func newModelStore(nodes []*modelNode, reachable []int) *modelStore {
	s := &modelStore{quit: make(chan struct{}), driver: driver.Driver[driver.Question]{
		Encode:      func(q, _ driver.Question) driver.Question { return q },
		NodeTimeout: func(ttl time.Duration) time.Duration { return ttl / 10 },
		Clock:       clock.System(),
		Logger:      slog.New(slog.DiscardHandler),
	}}
	for i, n := range nodes {
		l := &modelLink{node: n, index: i, cut: !slices.Contains(reachable, n.number), calls: make(chan driver.Call[driver.Question], 64)}
		s.links = append(s.links, l)
		s.driver.Nodes = append(s.driver.Nodes, l)
		s.done.Go(func() { l.serve(s.quit) })
	}
	return s
}

func (s *modelStore) Acquire(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
	return s.driver.Acquire(ctx, r)
}

func (s *modelStore) Renew(ctx context.Context, leases []store.Lease) []error {
	return s.driver.Renew(ctx, leases)
}

func (s *modelStore) Release(ctx context.Context, r store.ReleaseRequest) error {
	return s.driver.Release(ctx, r)
}

func (s *modelStore) Caps() store.Caps {
	return store.Caps{Engine: "model", Nodes: len(s.links), Quorum: quorum.Majority(len(s.links)), Reach: "process", Clock: "each node's own", MutexesOnly: true, NoQueue: true, NoBreaks: true}
}

// Close is called once, after all other calls.
func (s *modelStore) Close() error {
	close(s.quit)
	s.done.Wait()
	return nil
}
