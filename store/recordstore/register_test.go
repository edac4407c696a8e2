package recordstore_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/testenv/virtual"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
)

func lease(ttl time.Duration) store.Lease {
	return store.Lease{Name: "x", Owner: store.NewOwnerAt(time.Now()), TTL: ttl}
}

// counted counts the requests to an engine.
type counted struct {
	recordstore.Watcher
	reads, writes, conflicts atomic.Int64
}

func (c *counted) Read(ctx context.Context, key string) (recordstore.Item, error) {
	c.reads.Add(1)
	return c.Watcher.Read(ctx, key)
}

func (c *counted) Write(ctx context.Context, key string, value []byte, version string, idle bool) (string, error) {
	c.writes.Add(1)
	next, err := c.Watcher.Write(ctx, key, value, version, idle)
	if errors.Is(err, recordstore.ErrConflict) {
		c.conflicts.Add(1)
	}
	return next, err
}

// An uncontended lock costs one write, and a release another one. The first one reads, too.
func TestRequestsOfAFreeLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &counted{Watcher: (&server{pushes: true}).driver().(recordstore.Watcher)}
		s := open(d, nil, virtual.Clock())
		defer s.Close()
		for range 10 {
			l := lease(time.Minute)
			if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l}); err != nil {
				t.Fatal(err)
			}
			if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
				t.Fatal(err)
			}
		}
		if r, w := d.reads.Load(), d.writes.Load(); r != 1 || w != 20 {
			t.Errorf("ten locks and releases: %d reads and %d writes, want 1 and 20", r, w)
		}
	})
}

// The renewals of a thousand readers of one process go into a few writes.
func TestRenewalsOfOneLockAreOneWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &counted{Watcher: (&server{pushes: true}).driver().(recordstore.Watcher)}
		s := open(d, nil, virtual.Clock())
		defer s.Close()
		leases := make([]store.Lease, 1000)
		for i := range leases {
			leases[i] = lease(time.Minute)
			leases[i].Kind, leases[i].Weight = store.ReadWrite, 1
			if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: leases[i]}); err != nil {
				t.Fatal(err)
			}
		}
		before := d.writes.Load()
		for i, err := range s.Renew(t.Context(), leases) {
			if err != nil {
				t.Fatalf("renew lease %d: %v", i, err)
			}
		}
		if n := d.writes.Load() - before; n > 10 {
			t.Errorf("1,000 renewals made %d writes, want 10 at most", n)
		}
	})
}

// When a holder dies, one waiter hands its lock on and the others do nothing, though each of
// them is a process.
func TestOnlyTheFirstWaiterHandsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := &server{dates: true, pushes: true}
		holder := open(srv.driver(), nil, virtual.Clock())
		defer holder.Close()
		if _, err := holder.Acquire(t.Context(), store.AcquireRequest{Lease: lease(10 * time.Second)}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		var writes []*counted
		granted := make(chan int, 16)
		for i := range 16 {
			d := &counted{Watcher: srv.driver().(recordstore.Watcher)}
			writes = append(writes, d)
			s := open(d, nil, virtual.Clock())
			wg.Go(func() {
				defer s.Close()
				if _, err := s.Wait(ctx, store.WaitRequest{Lease: lease(time.Minute)}, nil); err == nil {
					granted <- i
				}
				<-ctx.Done()
			})
			synctest.Wait()
		}
		total := func() (n int64) {
			for _, d := range writes {
				n += d.writes.Load()
			}
			return n
		}
		before := total()
		if i := <-granted; i != 0 {
			t.Errorf("waiter %d gets the lock of the dead holder, want the first", i)
		}
		time.Sleep(2 * time.Second)
		if n := total() - before; n != 1 {
			t.Errorf("the end of the lease caused %d writes, want 1", n)
		}
		cancel()
		wg.Wait()
	})
}

// unreplicated shows each write to readers before it is acknowledged, and can lose it.
type unreplicated struct {
	*server
	mu     sync.Mutex
	hangs  bool
	before map[string]recordstore.Item // what a failover goes back to
	over   chan struct{}               // closed by a failover
}

type unreplicatedDriver struct {
	pushing
	u *unreplicated
}

func (d unreplicatedDriver) Write(ctx context.Context, key string, value []byte, version string, idle bool) (string, error) {
	d.u.mu.Lock()
	hangs, over := d.u.hangs, d.u.over
	if hangs {
		if _, ok := d.u.before[key]; !ok {
			it, _ := d.pushing.Read(ctx, key)
			d.u.before[key] = it
		}
	}
	next, err := d.pushing.Write(ctx, key, value, version, idle)
	d.u.mu.Unlock()
	if hangs && err == nil {
		select {
		case <-over:
			return "", errNoAnswer
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return next, err
}

// failover loses the writes that were not acknowledged.
func (u *unreplicated) failover() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.server.mu.Lock()
	for key, it := range u.before {
		u.server.records[key] = it
	}
	u.server.mu.Unlock()
	u.hangs, u.before = false, map[string]recordstore.Item{}
	close(u.over)
}

// A hand-off that a waiter has only read counts for nothing if the store promises more than
// efficiency: the write may not be on a majority of the engine's disks yet.
func TestHandOffCountsWhenAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := &unreplicated{server: &server{dates: true, pushes: true, class: store.CrashSafe}, before: map[string]recordstore.Item{}, over: make(chan struct{})}
		driver := func() recordstore.Driver { return unreplicatedDriver{u.driver().(pushing), u} }
		a, b := open(driver(), nil, virtual.Clock()), open(driver(), nil, virtual.Clock())
		defer a.Close()
		defer b.Close()
		mine := lease(time.Minute)
		if _, err := a.Acquire(t.Context(), store.AcquireRequest{Lease: mine}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		granted := make(chan error, 1)
		go func() {
			_, err := b.Wait(ctx, store.WaitRequest{Lease: lease(time.Minute)}, nil)
			granted <- err
		}()
		synctest.Wait()
		u.mu.Lock()
		u.hangs = true
		u.mu.Unlock()
		released := make(chan error, 1)
		go func() { released <- a.Release(t.Context(), store.ReleaseRequest{Lease: mine}) }()
		time.Sleep(time.Second) // b has seen the hand-off
		select {
		case err := <-granted:
			t.Fatalf("the waiter returned %v although the release was not acknowledged", err)
		default:
		}
		u.failover()
		if err := <-released; err != nil {
			t.Errorf("release after the failover: %v", err)
		}
		if err := <-granted; err != nil {
			t.Errorf("wait after the release: %v", err)
		}
		cancel()
	})
}

// lagging answers a write a second after it has pushed it.
type lagging struct{ *counted }

func (d lagging) Write(ctx context.Context, key string, value []byte, version string, idle bool) (string, error) {
	next, err := d.counted.Write(ctx, key, value, version, idle)
	time.Sleep(time.Second)
	return next, err
}

// A hand-off within a process is one write, also if the push of it comes before its answer: the
// waiter does not write again what the answer acknowledges.
func TestHandOffWithinAProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := lagging{&counted{Watcher: (&server{dates: true, pushes: true, class: store.CrashSafe}).driver().(recordstore.Watcher)}}
		s := open(d, nil, virtual.Clock())
		defer s.Close()
		l := lease(time.Minute)
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l}); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			next, granted := lease(time.Minute), make(chan error, 1)
			var grant store.Grant
			const waited = 18 * time.Second // its place is as old then
			go func() {
				g, err := s.Wait(t.Context(), store.WaitRequest{Lease: next}, nil)
				grant = g
				granted <- err
			}()
			time.Sleep(waited)
			writes := d.writes.Load()
			if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
				t.Fatal(err)
			}
			if err := <-granted; err != nil {
				t.Fatal(err)
			}
			if n := d.writes.Load() - writes; n != 1 {
				t.Errorf("a hand-off took %d writes, want that of the release", n)
			}
			if grant.Since >= waited {
				t.Errorf("the lease counts from %v after the request, but its beat is older", grant.Since)
			}
			l = next
		}
	})
}

// A look that finds a write of this client before its answer comes has not met another client: the next
// step is one write, and reads nothing first.
func TestLooksMeetOwnWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := lagging{&counted{Watcher: (&server{class: store.CrashSafe, pushes: true}).driver().(recordstore.Watcher)}}
		s := open(polled{d}, &recordstore.Options{Poll: 300 * time.Millisecond}, virtual.Clock())
		defer s.Close()
		l, next := lease(time.Minute), lease(time.Minute)
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l}); err != nil {
			t.Fatal(err)
		}
		granted := make(chan error, 1)
		go func() {
			_, err := s.Wait(t.Context(), store.WaitRequest{Lease: next}, nil)
			granted <- err
		}()
		time.Sleep(5 * time.Second) // it has a place
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
			t.Fatal(err)
		}
		if err := <-granted; err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second) // nobody looks any more
		reads, writes := d.reads.Load(), d.writes.Load()
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: next}); err != nil {
			t.Fatal(err)
		}
		if r, w := d.reads.Load()-reads, d.writes.Load()-writes; r != 0 || w != 1 {
			t.Errorf("the release took %d reads and %d writes, want 0 and 1", r, w)
		}
	})
}

// polled has no pushes.
type polled struct{ recordstore.Driver }

// A late push of an old version does not undo what this client has read or written since.
func TestOlderPushesAreIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &replayer{pushing: (&server{dates: true, pushes: true}).driver().(pushing), again: make(chan recordstore.Item, 1)}
		s := open(d, nil, virtual.Clock())
		defer s.Close()
		l := lease(time.Minute)
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l}); err != nil {
			t.Fatal(err)
		}
		old, err := d.Read(t.Context(), fmt.Sprintf("%x", "x"))
		if err != nil || old.Value == nil {
			t.Fatalf("read the record: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := s.Wait(ctx, store.WaitRequest{Lease: lease(time.Hour)}, nil)
			done <- err
		}()
		synctest.Wait()
		reads := d.reads.Load()
		d.again <- old
		synctest.Wait()
		for _, err := range s.Renew(t.Context(), []store.Lease{l}) {
			if err != nil {
				t.Errorf("renew: %v", err)
			}
		}
		if n := d.reads.Load() - reads; n != 0 {
			t.Errorf("%d reads follow, want none: what was known is still the newest", n)
		}
		cancel()
		<-done
	})
}

// replayer pushes what it is given.
type replayer struct {
	pushing
	again chan recordstore.Item
	reads atomic.Int64
}

func (d *replayer) Read(ctx context.Context, key string) (recordstore.Item, error) {
	d.reads.Add(1)
	return d.pushing.Read(ctx, key)
}

func (d *replayer) Watch(ctx context.Context, _ string) (<-chan recordstore.Item, error) {
	return d.again, nil
}

// A record that an engine has lost, or got back from a backup, does not stop the lock.
func TestARecordThatWentBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := &server{dates: true, pushes: true}
		s := open(srv.driver(), nil, virtual.Clock())
		defer s.Close()
		var last fence.Token
		for i := range 10 {
			l := lease(time.Minute)
			g, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l})
			if err != nil {
				t.Fatalf("acquire %d: %v", i, err)
			}
			if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
				t.Fatalf("release %d: %v", i, err)
			}
			if i != 5 && g.Token <= last {
				t.Errorf("token %d after %d", g.Token, last)
			}
			if last = g.Token; i == 4 {
				srv.mu.Lock()
				clear(srv.records)
				srv.writes, srv.deleted = 0, 1
				srv.mu.Unlock()
			}
		}
	})
}

// A driver that refuses a request ends it at once, and with its reason.
func TestRefusalsEndARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(refusing{(&server{}).driver()}, nil, virtual.Clock())
		defer s.Close()
		began := time.Now()
		_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: lease(time.Minute)})
		if !errors.Is(err, recordstore.ErrRefused) || errors.Is(err, store.ErrAmbiguous) || time.Since(began) > time.Second {
			t.Errorf("Acquire: %v after %v, want the refusal at once", err, time.Since(began))
		}
	})
}

type refusing struct{ recordstore.Driver }

func (refusing) Write(context.Context, string, []byte, string, bool) (string, error) {
	return "", fmt.Errorf("%w: no right to write", recordstore.ErrRefused)
}

// highFloor is a driver whose Floor is larger than that of others, as from a clock that is ahead.
type highFloor struct{ recordstore.Driver }

func (d highFloor) Read(ctx context.Context, key string) (recordstore.Item, error) {
	it, err := d.Driver.Read(ctx, key)
	if it.Value == nil {
		it.Floor += 1000
	}
	return it, err
}

// Two clients that find no record may read different floors. The record that one of them makes
// is no record that has gone back.
func TestFloorsMayDiffer(t *testing.T) {
	var srv server
	var log strings.Builder
	ahead := recordstore.New(highFloor{srv.driver()}, &recordstore.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	defer ahead.Close()
	other := recordstore.New(srv.driver(), nil)
	defer other.Close()
	if _, err := ahead.Inspect(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Acquire(t.Context(), store.AcquireRequest{Lease: store.Lease{Name: "a", Owner: store.NewOwner(), TTL: time.Minute}}); err != nil {
		t.Fatal(err)
	}
	if locks, err := ahead.List(t.Context(), ""); err != nil || len(locks) != 1 {
		t.Errorf("list: %v, %v, want the lock of the other client", locks, err)
	}
	if _, err := ahead.Acquire(t.Context(), store.AcquireRequest{Lease: store.Lease{Name: "a", Owner: store.NewOwner(), TTL: time.Minute}}); !errors.Is(err, store.ErrBusy) {
		t.Errorf("acquire what another client has: %v, want busy", err)
	}
	if log.Len() > 0 {
		t.Errorf("logged %s", log.String())
	}
}
