package redisstore_test

import (
	"context"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/storetest"
)

// started is a store whose calls are started, and whose callers wait for them.
type started struct{ store.Starter }

func (s started) Acquire(ctx context.Context, r store.AcquireRequest) (g store.Grant, err error) {
	over := make(chan struct{})
	if !s.StartAcquire(ctx, r, func(got store.Grant, failed error) { g, err = got, failed; close(over) }) {
		return s.Starter.Acquire(ctx, r)
	}
	s.Flush()
	<-over
	return g, err
}

func (s started) Release(ctx context.Context, r store.ReleaseRequest) error {
	over := make(chan error, 1)
	if !s.StartRelease(ctx, r, func(err error) { over <- err }) {
		return s.Starter.Release(ctx, r)
	}
	s.Flush()
	return <-over
}

// openStarted opens a store of one server whose calls are started.
func openStarted(t *testing.T, address string) *store.Store {
	e := open(t, []string{address}, nil).Engine().(store.Starter)
	s := store.New(started{e})
	t.Cleanup(func() { s.Close() })
	return s
}

func TestConformanceOfStartedCalls(t *testing.T) {
	t.Parallel()
	address := redistest.Start(t).Addr()
	another := func(t *testing.T) *store.Store { return openStarted(t, address) }
	storetest.Run(t, another, storetest.Options{Second: another, AnyAfterExpiry: true})
}

func TestFaultsOfStartedCalls(t *testing.T) {
	server := redistest.Start(t)
	storetest.RunFaults(t, func(t *testing.T) (*store.Store, storetest.Link) {
		p := faultproxy.New(t, server.Addr())
		return openStarted(t, p.Addr()), p
	}, storetest.Options{GivesUp: true, Second: func(t *testing.T) *store.Store { return open(t, []string{server.Addr()}, nil) }})
}
