package zkstore

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gozk "github.com/go-zookeeper/zk"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/store"
)

// silent is a logger.
type silent struct{}

func (silent) Printf(string, ...any) {}

// connect connects as another client does.
func connect(t testing.TB) *gozk.Conn {
	t.Helper()
	c, _, err := gozk.Connect([]string{shared.Addr}, 10*time.Second, gozk.WithLogger(silent{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// room counts the holders of a lock.
type room struct{ inside atomic.Int64 }

// enter is a turn of a holder, during which the others are to want the lock. It fails the
// test if it is not the only one.
func (r *room) enter(t *testing.T, count *atomic.Int64) {
	if n := r.inside.Add(1); n != 1 {
		t.Errorf("%d holders at once", n)
	}
	time.Sleep(time.Millisecond)
	count.Add(1)
	r.inside.Add(-1)
}

// takeTurns waits for the lock, enters and releases it, so many times. With most releases
// it queues for the next turn, and returns how often it got a place so. The token of each
// grant is the one that is shown to others.
func takeTurns(t *testing.T, s *engine, name string, turns int, enter func()) (rejoined int) {
	next := func() store.WaitRequest { return store.WaitRequest{Lease: request(name, 20*time.Second)} }
	r := next()
	for i := range turns {
		g, err := s.Wait(t.Context(), r, nil)
		if err != nil {
			t.Errorf("wait: %v", err)
			return rejoined
		}
		enter()
		if st, err := s.Inspect(t.Context(), name); err != nil || st.Holder.Owner != r.Owner || st.Token != g.Token {
			t.Errorf("granted token %v to %s, and inspect says %+v, %v", g.Token, r.Owner, st, err)
		}
		release, then := store.ReleaseRequest{Lease: r.Lease}, next()
		if i%4 < 3 && i+1 < turns {
			var queued bool
			if queued, err = s.ReleaseAndRejoin(t.Context(), release, then); queued {
				rejoined++
			}
		} else {
			err = s.Release(t.Context(), release)
		}
		if err != nil {
			t.Errorf("release: %v", err)
		}
		r = then
	}
	return rejoined
}

// Six of go-zookeeper's locks and six of ours take turns, and never hold the lock at once.
func TestTurnsWithGoZooKeeper(t *testing.T) {
	t.Parallel() // it mostly waits
	const name, each, turns = "shared with others", 6, 8
	var room room
	var ours, theirs atomic.Int64
	var wg sync.WaitGroup
	for range each {
		s := mustOpen(t, &Options{servers: []string{shared.Addr}})
		wg.Go(func() { takeTurns(t, s, name, turns, func() { room.enter(t, &ours) }) })
		lock := gozk.NewLock(connect(t), DefaultBase+"/"+name, gozk.WorldACL(gozk.PermAll))
		wg.Go(func() {
			for range turns {
				if err := lock.Lock(); err != nil {
					t.Errorf("go-zookeeper: lock: %v", err)
					return
				}
				room.enter(t, &theirs)
				if err := lock.Unlock(); err != nil {
					t.Errorf("go-zookeeper: unlock: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if ours.Load() != each*turns || theirs.Load() != each*turns {
		t.Errorf("this store had %d turns and go-zookeeper %d, want %d each", ours.Load(), theirs.Load(), each*turns)
	}
}

// Inspect shows another client's holder as foreign, and this store waits for it.
func TestLockOfAnotherClient(t *testing.T) {
	t.Parallel() // it mostly waits
	s := mustOpen(t, &Options{servers: []string{shared.Addr}})
	const name = "of another client"
	lock := gozk.NewLock(connect(t), DefaultBase+"/"+name, gozk.WorldACL(gozk.PermAll))
	if err := lock.LockWithData([]byte("192.0.2.1")); err != nil {
		t.Fatal(err)
	}
	st, err := s.Inspect(t.Context(), name)
	if err != nil || !st.Held || !st.Holder.Foreign || st.Holder.Owner == "" || st.ExpiresIn <= 0 || st.Token == 0 {
		t.Fatalf("inspect: %+v, %v, want a foreign holder with an owner, a token and a TTL", st, err)
	}
	r := request(name, 20*time.Second)
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r}); err == nil {
		t.Fatal("granted a lock that another client holds")
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	if g := mustAcquire(t, s, r); g.Token <= st.Token {
		t.Errorf("token %v after %v, want a larger one", g.Token, st.Token)
	}
}

// A lease that moves to another session keeps its place, and waiters of any client go on
// waiting.
func TestMoveUnderWaiters(t *testing.T) {
	t.Parallel() // it mostly waits
	a, b := mustOpen(t, &Options{servers: []string{shared.Addr}}), mustOpen(t, &Options{servers: []string{shared.Addr}})
	const name = "moves"
	l := request(name, 5*time.Second)
	g := mustAcquire(t, a, l)
	var moves atomic.Bool
	moves.Store(true)
	var wg sync.WaitGroup
	wait := func(what string, lock, unlock func() error) {
		wg.Go(func() {
			if err := lock(); err != nil {
				t.Errorf("%s: %v", what, err)
				return
			}
			if moves.Load() {
				t.Errorf("%s has the lock while the first holder has it", what)
			}
			if err := unlock(); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
	native := gozk.NewLock(connect(t), DefaultBase+"/"+name, gozk.WorldACL(gozk.PermAll))
	wait("go-zookeeper", native.Lock, native.Unlock)
	r := store.WaitRequest{Lease: request(name, 20*time.Second)}
	wait("ours", func() error { _, err := b.Wait(t.Context(), r, nil); return err }, func() error {
		return b.Release(t.Context(), store.ReleaseRequest{Lease: r.Lease})
	})
	eventually.True(t, "both wait", func() bool {
		st, err := a.Inspect(t.Context(), name)
		return err == nil && len(st.Queue) == 2
	})
	for i := range 6 {
		s := []*engine{b, a}[i%2]
		longer := l
		longer.TTL += time.Duration(i) * time.Second
		if err := s.Renew(t.Context(), []store.Lease{longer})[0]; err != nil {
			t.Fatalf("renew through another handle: %v", err)
		}
		if st, err := a.Inspect(t.Context(), name); err != nil || st.Token != g.Token || st.Holder.Owner != l.Owner || len(st.Queue) != 2 {
			t.Fatalf("inspect after the lease moved: %+v, %v, want token %v, the holder %s and two waiters", st, err, g.Token, l.Owner)
		}
	}
	moves.Store(false)
	mustRelease(t, b, l)
	wg.Wait()
}
