package recordstore_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/virtual"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// informed is a driver that notes what each write changes.
type informed struct {
	recordstore.Watcher
	mu      sync.Mutex
	changes []recordstore.Change
}

func (d *informed) WriteChange(ctx context.Context, key string, value []byte, version string, c recordstore.Change) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.changes = append(d.changes, c)
	return d.Watcher.Write(ctx, key, value, version, c.Idle)
}

func (d *informed) last() recordstore.Change {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changes[len(d.changes)-1]
}

// A driver learns whose the lease of a mutex is.
func TestChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := &server{pushes: true}
		d := &informed{Watcher: srv.driver().(recordstore.Watcher)}
		here, there := open(d, nil, virtual.Clock()), open(srv.driver(), nil, virtual.Clock())
		defer here.Close()
		defer there.Close()
		check := func(after, holder string) {
			t.Helper()
			if c := d.last(); c.Holder != holder {
				t.Errorf("%s: %+v, want holder %q", after, c, holder)
			}
		}
		first, local, remote := lease(time.Minute), lease(time.Minute), lease(time.Minute)
		ctx := t.Context()
		if _, err := here.Acquire(ctx, store.AcquireRequest{Lease: first}); err != nil {
			t.Fatal(err)
		}
		check("acquire", first.Owner)
		got := make(chan error, 2)
		go func() { _, err := here.Wait(ctx, store.WaitRequest{Lease: local}, nil); got <- err }()
		synctest.Wait()
		go func() { _, err := there.Wait(ctx, store.WaitRequest{Lease: remote}, nil); got <- err }()
		synctest.Wait()
		if err := here.Renew(ctx, []store.Lease{first})[0]; err != nil {
			t.Fatal(err)
		}
		check("renew beside waiters", first.Owner)
		if err := here.Release(ctx, store.ReleaseRequest{Lease: first}); err != nil {
			t.Fatal(err)
		}
		check("release to a waiter of the same process", local.Owner)
		if err := <-got; err != nil {
			t.Fatal(err)
		}
		if err := here.Release(ctx, store.ReleaseRequest{Lease: local}); err != nil {
			t.Fatal(err)
		}
		check("release to a waiter of another process", remote.Owner)
		if err := <-got; err != nil {
			t.Fatal(err)
		}
		if err := there.Release(ctx, store.ReleaseRequest{Lease: remote}); err != nil {
			t.Fatal(err)
		}
		reader := lease(time.Minute)
		reader.Kind = store.ReadWrite
		if _, err := here.Acquire(ctx, store.AcquireRequest{Lease: reader}); err != nil {
			t.Fatal(err)
		}
		check("acquire as a reader", recordstore.Several)
		if err := here.Release(ctx, store.ReleaseRequest{Lease: reader}); err != nil {
			t.Fatal(err)
		}
		check("release", "")
	})
}
