// Package rueidisnode is redisstore with the connections of rueidis, to measure what
// redisstore's own connections gain: the client, the quorum and the scripts are the same.
// It is not for use. It measures locks on one server that nobody else wants; everything else
// goes through a store.Store of its own.
package rueidisnode

import (
	"context"
	"log/slog"
	"time"

	"github.com/redis/rueidis"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// engine acquires, renews and releases through rueidis.
type engine struct {
	store.Engine
	client rueidis.Client
	driver driver.Driver[*script.Command]
}

// Open connects to a server.
func Open(ctx context.Context, addr string) (*store.Store, error) {
	own, err := redisstore.Open(ctx, "redis://"+addr, nil)
	if err != nil {
		return nil, err
	}
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true})
	if err != nil {
		own.Close()
		return nil, err
	}
	s := &engine{Engine: own.Engine(), client: client}
	s.driver = driver.Driver[*script.Command]{
		Nodes: []driver.Node[*script.Command]{&node{addr, client}}, NodeTimeout: func(time.Duration) time.Duration { return 300 * time.Millisecond },
		Clock: clock.System(), Logger: slog.New(slog.DiscardHandler),
		Encode: func(q driver.Question, old *script.Command) *script.Command {
			e := script.Encoder{Wall: time.Now}
			return e.Encode(q, old)
		},
	}
	return store.New(s), nil
}

// Acquire implements driver.Engine.
func (s *engine) Acquire(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
	return s.driver.Acquire(ctx, r)
}

// Renew implements driver.Engine.
func (s *engine) Renew(ctx context.Context, leases []store.Lease) []error {
	return s.driver.Renew(ctx, leases)
}

// Release implements driver.Engine.
func (s *engine) Release(ctx context.Context, r store.ReleaseRequest) error {
	return s.driver.Release(ctx, r)
}

// Close closes all connections.
func (s *engine) Close() error {
	s.client.Close()
	return s.Engine.Close()
}
