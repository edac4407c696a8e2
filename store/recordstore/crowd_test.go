package recordstore_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testenv/virtual"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// database is a server that does one thing after the other, wakes the clients that it is asked to, and
// locks a record while it writes it to disk: other writes wait, and then meet another version.
type database struct {
	server
	write time.Duration // the time of a write without others; a read takes half of it
	disk  chan struct{} // has a value while a record is written

	mu    sync.Mutex
	busy  time.Time // until then
	bells map[string]chan struct{}
}

func newDatabase(write time.Duration) *database {
	return &database{server: server{class: store.CrashSafe, dates: true}, write: write, disk: make(chan struct{}, 1), bells: map[string]chan struct{}{}}
}

// client returns a client of the database.
func (d *database) client(t *testing.T) *store.Store {
	s := recordstore.New(session{d.driver().(mapDriver), d, store.NewOwner()}, nil)
	recordstore.SetClock(s, virtual.Clock())
	t.Cleanup(func() { s.Close() })
	return s
}

// arrive returns when the server has understood a request.
func (d *database) arrive(travel time.Duration) {
	time.Sleep(travel + rand.N(travel))
	d.mu.Lock()
	if now := time.Now(); d.busy.Before(now) {
		d.busy = now
	}
	d.busy = d.busy.Add(d.write / 2)
	until := d.busy
	d.mu.Unlock()
	time.Sleep(time.Until(until))
}

// session is the driver of one client.
type session struct {
	mapDriver
	d    *database
	name string
}

func (s session) Read(ctx context.Context, key string) (recordstore.Item, error) {
	s.d.arrive(s.d.write / 16)
	defer time.Sleep(s.d.write / 4)
	return s.mapDriver.Read(ctx, key)
}

func (s session) Write(ctx context.Context, key string, value []byte, version string, idle bool) (string, error) {
	s.d.arrive(s.d.write / 8)
	s.d.disk <- struct{}{}
	defer time.Sleep(s.d.write / 8)
	defer func() { <-s.d.disk }()
	time.Sleep(s.d.write / 8)
	if it, _ := s.mapDriver.Read(ctx, key); it.Version == version {
		time.Sleep(s.d.write / 2)
	}
	return s.mapDriver.Write(ctx, key, value, version, idle)
}

func (s session) Session() string { return s.name }

func (s session) Ring(name, _ string) {
	go func() {
		s.d.arrive(s.d.write / 16)
		s.d.mu.Lock()
		defer s.d.mu.Unlock()
		select {
		case s.d.bells[name] <- struct{}{}:
		default:
		}
	}()
}

func (s session) Watch(ctx context.Context, key string) (<-chan recordstore.Item, error) {
	rung, items := make(chan struct{}, 1), make(chan recordstore.Item)
	rung <- struct{}{} // it may have been rung before
	s.d.mu.Lock()
	defer s.d.mu.Unlock()
	s.d.bells[s.name] = rung
	go func() {
		defer close(items)
		for {
			select {
			case <-rung:
			case <-ctx.Done():
				return
			}
			it, _ := s.Read(ctx, key)
			select {
			case items <- it:
			case <-ctx.Done():
				return
			}
		}
	}()
	return items, nil
}

// wants has a client take a lock and release it at once, again and again, until ctx ends. It calls each
// after each turn.
func wants(ctx context.Context, t *testing.T, s *store.Store, each func()) {
	m := leasehold.New(s, &leasehold.Options{Clock: virtual.Clock()}).Mutex("x")
	for ctx.Err() == nil {
		l, err := m.Acquire(ctx)
		if err == nil {
			each()
			err = l.Release(context.WithoutCancel(ctx))
		}
		if err != nil && ctx.Err() == nil {
			t.Error(err)
			return
		}
	}
}

// A client that wants the lock gets it soon, though another one takes and releases it as fast as it can: a
// lost write makes it wait for about as long as a write takes, and not past the pause that the other one makes.
func TestNewcomerBesideABusyClient(t *testing.T) {
	const most = 400 // writes
	for _, write := range []time.Duration{300 * time.Microsecond, 3 * time.Millisecond, 30 * time.Millisecond} {
		for range 10 {
			synctest.Test(t, func(t *testing.T) {
				d := newDatabase(write)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go wants(ctx, t, d.client(t), func() {})
				time.Sleep(50*write + rand.N(100*write))
				began := time.Now()
				first := make(chan time.Time, 1)
				go wants(ctx, t, d.client(t), func() {
					select {
					case first <- time.Now():
					default:
					}
				})
				if took := (<-first).Sub(began); took > most*write {
					t.Errorf("a newcomer had its first turn after the time of %d writes of %v, want %d at most", took/write, write, most)
				}
				cancel()
				synctest.Wait()
			})
		}
	}
}

// While many clients that want the lock all write at once, its holder renews its lease sooner than it would as
// one of them. Then all of them have their turn.
func TestClientsThatAllWantTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const write = 300 * time.Microsecond
		const clients, ttl = 128, 15 * time.Second
		const mostToRenew, mostToHave = 38, 64 * clients // writes
		d := newDatabase(write)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		holder := d.client(t)
		held := store.Lease{Name: "x", Owner: store.NewOwner(), TTL: ttl}
		if _, err := holder.Acquire(ctx, store.AcquireRequest{Lease: held}); err != nil {
			t.Fatal(err)
		}
		var missing sync.WaitGroup
		missing.Add(clients)
		for range clients {
			go wants(ctx, t, d.client(t), sync.OnceFunc(missing.Done))
		}
		const renewals = 20
		renewing := time.Duration(0)
		for range renewals {
			began := time.Now()
			if err := holder.Renew(ctx, []store.Lease{held})[0]; err != nil {
				t.Error(err)
			}
			renewing += time.Since(began)
			time.Sleep(10 * write)
		}
		if took := renewing / renewals; took > mostToRenew*write {
			t.Errorf("a renewal took the time of %d writes of %v, want %d at most", took/write, write, mostToRenew)
		}
		if err := holder.Release(ctx, store.ReleaseRequest{Lease: held}); err != nil {
			t.Error(err)
		}
		began := time.Now()
		missing.Wait()
		if took := time.Since(began); took > mostToHave*write {
			t.Errorf("all clients had a turn after the time of %d writes of %v, want %d at most", took/write, write, mostToHave)
		}
		cancel()
		synctest.Wait()
	})
}
