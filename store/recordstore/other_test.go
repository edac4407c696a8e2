package recordstore_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/virtual"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// led is an engine with one record, of which clients that know nothing of records can make themselves
// the leader.
type led struct {
	mu      sync.Mutex
	it      recordstore.Item
	n       uint64
	changes []recordstore.Change
	watches map[chan recordstore.Item]bool
}

func (d *led) Describe() store.Caps {
	return store.Caps{Engine: "led", Reach: "process", Clock: "observed", Class: store.CrashSafe}
}

func (d *led) Read(ctx context.Context, _ string) (recordstore.Item, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.it, ctx.Err()
}

func (d *led) Write(ctx context.Context, key string, value []byte, version string, idle bool) (string, error) {
	return d.WriteChange(ctx, key, value, version, recordstore.Change{Idle: idle})
}

func (d *led) WriteChange(_ context.Context, _ string, value []byte, version string, c recordstore.Change) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.it.Version != version {
		return "", recordstore.ErrConflict
	}
	it := recordstore.Item{Value: value}
	if c.Other {
		it.Other = d.it.Other
	}
	d.changes = append(d.changes, c)
	d.putLocked(it)
	return d.it.Version, nil
}

func (d *led) putLocked(it recordstore.Item) {
	d.n++
	it.Version, it.Order = strconv.FormatUint(d.n, 10), d.n
	if it.Value == nil {
		it.Floor = d.n
	}
	d.it = it
	for ch := range d.watches {
		ch <- it
	}
}

// lead makes another kind of client the leader.
func (d *led) lead(owner string, ttl time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.putLocked(recordstore.Item{Value: d.it.Value, Other: &recordstore.Other{Owner: owner, TTL: ttl, Beat: d.n}})
}

func (d *led) last() recordstore.Change {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changes[len(d.changes)-1]
}

func (d *led) Watch(ctx context.Context, _ string) (<-chan recordstore.Item, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	ch := make(chan recordstore.Item, 100)
	if d.watches == nil {
		d.watches = map[chan recordstore.Item]bool{}
	}
	d.watches[ch] = true
	context.AfterFunc(ctx, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.watches, ch)
		close(ch)
	})
	return ch, nil
}

func (d *led) List(context.Context, func(string, recordstore.Item) error) error { return nil }

func (d *led) Close() error { return nil }

// The leases of clients that know nothing of records exclude holders, and end as they do. What a
// write says of the lock is what such clients have to be told.
func TestOtherClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &led{it: recordstore.Item{Version: "none"}}
		ctx, s := t.Context(), open(d, nil, virtual.Clock())
		defer s.Close()
		wait := func(l store.Lease) chan store.Grant {
			got := make(chan store.Grant, 1)
			go func() {
				g, err := s.Wait(ctx, store.WaitRequest{Lease: l}, nil)
				if err != nil {
					t.Error(err)
				}
				got <- g
			}()
			synctest.Wait()
			return got
		}

		const ttl = 10 * time.Second
		d.lead("leader", ttl)
		first := lease(time.Minute)
		busy := (*store.BusyError)(nil)
		if _, err := s.Acquire(ctx, store.AcquireRequest{Lease: first}); !errors.As(err, &busy) || !busy.Holder.Foreign || busy.Holder.Owner != "leader" {
			t.Fatalf("acquire behind a leader: %v, want that it is busy", err)
		}
		got := wait(first)
		if c := d.last(); !c.Other || c.TTL != ttl || c.Renewed {
			t.Errorf("a waiter's write: %+v, want that the leader's lease goes on", c)
		}
		for range 6 {
			time.Sleep(ttl / 2)
			d.lead("leader", ttl)
		}
		synctest.Wait()
		if len(got) > 0 {
			t.Fatal("granted behind a leader that renews")
		}
		if _, err := s.BreakLease(ctx, store.BreakRequest{Name: "x", Owner: "leader", Token: 1}); !errors.Is(err, store.ErrUnsupported) {
			t.Errorf("break the lease of a leader: %v, want that only it can end it", err)
		}
		began := time.Now()
		d.lead("", ttl)
		one := <-got
		if took := time.Since(began); took > time.Second {
			t.Errorf("granted %v after the leader has ended, want at once", took)
		}
		if c := d.last(); c.Other || c.Holder != first.Owner || c.TTL != time.Minute || !c.Renewed {
			t.Errorf("a grant's write: %+v, want the new holder", c)
		}

		second := lease(time.Minute)
		got = wait(second)
		time.Sleep(30 * time.Second)
		if c := d.last(); c.Holder != first.Owner || c.Renewed { // it has refreshed its place
			t.Errorf("a waiter's write: %+v, want that the holder's lease is as old as before", c)
		}
		d.lead("thief", ttl) // after the lease, by its own clock
		began = time.Now()
		if err := s.Renew(ctx, []store.Lease{first})[0]; !errors.Is(err, store.ErrNotHeld) {
			t.Errorf("renew after another leads: %v, want that it is not held", err)
		}
		if st, err := s.Inspect(ctx, "x"); err != nil || !st.Holder.Foreign || st.Token != 0 || len(st.Queue) != 1 {
			t.Errorf("inspect: %+v, %v, want the leader and a waiter", st, err)
		}
		two := <-got
		if took := time.Since(began); took < ttl || took > ttl+time.Second {
			t.Errorf("granted %v after a leader with a lease of %v was heard last", took, ttl)
		}
		if two.Token <= one.Token {
			t.Errorf("token %v after %v, want a larger one", two.Token, one.Token)
		}
		if err := s.Release(ctx, store.ReleaseRequest{Lease: second}); err != nil {
			t.Fatal(err)
		}
		if c := d.last(); c.Other || c.Holder != "" || c.TTL != 0 || c.Renewed {
			t.Errorf("a release's write: %+v, want nobody", c)
		}
	})
}
