package redisstore_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// shared returns a request for a lock that several can hold. Its TTL is so long that a waiter
// learns in time only what it is notified of.
func shared(name string, kind store.Kind, weight int64) store.Lease {
	r := patientWaiter(name)
	r.Kind, r.Weight = kind, weight
	return r
}

// The name of the lock has a key, so that clients that use SET NX find it taken, and so have all
// mutexes. Each holder has a field of its own beside it.
func TestWireFormatOfShares(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, []string{server.Addr()}, nil)
	r := shared("jobs/nightly", store.Semaphore(3), 2)
	r.Meta = store.Holder{Host: "h", PID: 1}.Encode()
	acquire(t, s, r)
	text := server.Text(t, "GET", "jobs/nightly")
	if begin, end := " s3 0 ", " 0 0  "+r.Owner+` {"host":"h","pid":1}`; !strings.HasPrefix(text, begin) || !strings.HasSuffix(text, end) {
		t.Errorf("the value is %q, want %q, more of the holder, and %q", text, begin, end)
	}
	if keys := server.Keys(t); len(keys) != 2 {
		t.Errorf("keys %q, want the lock and its counter", keys)
	}
	next := shared("jobs/nightly", store.Semaphore(3), 1)
	acquire(t, s, next)
	if text, want := server.Text(t, "GET", "jobs/nightly"), " s3 0"; text != want {
		t.Errorf("the value for two holders is %q, want %q", text, want)
	}
	if held := server.Text(t, "HGET", "{jobs/nightly}:held", r.Owner); !strings.HasSuffix(held, " 0 0  "+r.Owner+` {"host":"h","pid":1}`) {
		t.Errorf("the field of the holder is %q", held)
	}
	if said := server.Text(t, "SET", "jobs/nightly", "theirs", "NX", "PX", "1000"); said != "(nil)" {
		t.Errorf("another client gets the held lock: the reply is %s", said)
	}
	if keys := server.Keys(t); len(keys) != 5 {
		t.Errorf("keys %q, want the lock, its counter, its holders, their ends and their ranks", keys)
	}
	for _, l := range []store.Lease{r, next} {
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
			t.Fatal(err)
		}
	}
	if said := server.Text(t, "SET", "jobs/nightly", "theirs", "NX", "PX", "60000"); said != "OK" {
		t.Errorf("another client does not get the free lock: the reply is %s", said)
	}
	_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: shared("jobs/nightly", store.Semaphore(3), 1)})
	var busy *store.BusyError
	if !errors.As(err, &busy) || !busy.Holder.Foreign {
		t.Errorf("acquire a lock of another client: %v, want a *BusyError with a foreign holder", err)
	}
}

// If replies and pushes are lost, a waiter asks again once its connection is back, and an
// acquire leaves no keys.
func TestSharesWithLostReplies(t *testing.T) {
	servers := redistest.StartN(t, 1)
	proxies := behind(t, servers)
	s, cut := open(t, addrs(servers), nil), open(t, addrs(proxies), nil)
	writer, next := shared("stock", store.ReadWrite, store.ReadWriteLimit), shared("stock", store.ReadWrite, 1)
	acquire(t, s, writer)
	done := wait(t, t.Context(), cut, servers, next)
	proxies[0].DropReplies()
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: writer}); err != nil {
		t.Fatal(err)
	}
	proxies[0].Await(t, "the message is lost", func(st faultproxy.Stats) bool { return st.Replies.Lost > 0 })
	proxies[0].Cut()
	proxies[0].Pass()
	mustRelease(t, s, next, grantedSoon(t, done))

	// The reply to an acquire is lost.
	hasty := open(t, addrs(proxies), &redisstore.Options{NodeTimeout: time.Second})
	acquire(t, hasty, shared("other", store.Semaphore(2), 1))
	before := proxies[0].Stats().Replies.Lost
	proxies[0].DropReplies()
	if _, err := hasty.Acquire(t.Context(), store.AcquireRequest{Lease: shared("stock", store.Semaphore(2), 1)}); !errors.Is(err, store.ErrQuorum) {
		t.Fatalf("acquire without a reply: %v, want %v", err, store.ErrQuorum)
	}
	if proxies[0].Stats().Replies.Lost == before {
		t.Fatal("no reply was lost")
	}
	proxies[0].Cut()
	proxies[0].Pass()
	eventually.True(t, "no keys of the attempt are left", noLock(t, servers, "stock"))
}

// A waiter whose connection is gone is skipped in the same step.
func TestDeadWaiterForAPermitIsSkipped(t *testing.T) {
	servers := redistest.StartN(t, 1)
	proxies := behind(t, servers)
	s, dies := open(t, addrs(servers), nil), open(t, addrs(proxies), nil)
	kind := store.Semaphore(2)
	held := shared("stock", kind, 2)
	acquire(t, s, held)
	ctx, cancel := context.WithCancel(t.Context())
	dead := wait(t, ctx, dies, servers, shared("stock", kind, 2))
	one, two := shared("stock", kind, 1), shared("stock", kind, 1)
	first, second := wait(t, t.Context(), s, servers, one), wait(t, t.Context(), s, servers, two)
	proxies[0].RefuseNew()
	proxies[0].Cut()
	eventually.True(t, "the server has noticed that the connection is gone", func() bool {
		return strings.Count(servers[0].Text(t, "CLIENT", "LIST", "TYPE", "pubsub"), "name=leasehold") == 1
	})
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: held}); err != nil {
		t.Fatal(err)
	}
	mustRelease(t, s, one, grantedSoon(t, first))
	mustRelease(t, s, two, grantedSoon(t, second))
	cancel()
	if o := <-dead; !errors.Is(o.err, context.Canceled) {
		t.Errorf("the wait of the dead waiter: %+v, want %v", o, context.Canceled)
	}
}

// While connections break and scripts are flushed, there are never more holders than permits,
// every worker gets its turns, and no keys are left in the end.
func TestPermitsWhileConnectionsBreak(t *testing.T) {
	const permits, workers, rounds = 3, 8, 25
	servers := redistest.StartN(t, 1)
	var inside, turns atomic.Int64
	var all sync.WaitGroup
	for w := range workers {
		proxy := behind(t, servers)[0]
		s := open(t, []string{proxy.Addr()}, nil)
		all.Go(func() {
			for round := range rounds {
				r := shared("stock", store.Semaphore(permits), 1)
				g, err := s.Wait(t.Context(), store.WaitRequest{Lease: r}, nil)
				if err != nil {
					t.Errorf("wait: %v", err)
					return
				}
				if n := inside.Add(1); n > permits {
					t.Errorf("%d holders of %d permits", n, permits)
				}
				if turns.Add(1); (w+round)%4 == 0 {
					proxy.Cut()
				}
				if (w+round)%16 == 1 {
					servers[0].Text(t, "SCRIPT", "FLUSH")
				}
				inside.Add(-1)
				// The release may be lost with the connection, and is then sent again.
				if err := s.Release(t.Context(), store.ReleaseRequest{Lease: g.Lease}); err != nil && !errors.Is(err, store.ErrQuorum) && !errors.Is(err, store.ErrNotHeld) {
					t.Errorf("release: %v", err)
				}
			}
		})
	}
	all.Wait()
	if n := turns.Load(); n != workers*rounds {
		t.Errorf("%d turns, want %d", n, workers*rounds)
	}
	nothingLeft(t, servers)
}

// A server that syncs its file keeps permits, places and their order when it is killed.
func TestPermitsOutliveACrash(t *testing.T) {
	servers := redistest.StartN(t, 1, "--appendonly", "yes", "--appendfsync", "always")
	s := open(t, addrs(servers), nil)
	kind := store.Semaphore(2)
	one, two := shared("stock", kind, 1), shared("stock", kind, 1)
	acquire(t, s, one)
	acquire(t, s, two)
	next := shared("stock", kind, 1)
	done := wait(t, t.Context(), s, servers, next)
	restart(t, servers...)
	eventually.True(t, "the store reaches the server", func() bool {
		return s.Renew(t.Context(), []store.Lease{one})[0] == nil
	})
	_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: shared("stock", kind, 1)})
	if !errors.Is(err, store.ErrBusy) {
		t.Fatalf("acquire a third permit of two: %v, want %v", err, store.ErrBusy)
	}
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: two}); err != nil {
		t.Fatal(err)
	}
	g := grantedSoon(t, done)
	if g.Slot != 1 {
		t.Errorf("slot %d, want 1, which was released", g.Slot)
	}
	mustRelease(t, s, next, g)
	mustRelease(t, s, one, store.Grant{})
}

// A server that has lost permits grants none that require crash safety.
func TestPermitsInQuarantine(t *testing.T) {
	server := redistest.Start(t)
	server.Declare()
	s := open(t, []string{server.Addr()}, nil)
	safe := func() store.Lease {
		r := shared("stock", store.Semaphore(2), 1)
		r.Require = store.CrashSafe
		return r
	}
	one := safe()
	acquire(t, s, one)
	acquire(t, s, safe())
	restart(t, server)
	eventually.True(t, "the server is in quarantine", func() bool {
		_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: safe()})
		var q *store.QuorumError
		return errors.As(err, &q) && q.Count(store.Quarantined) == 1
	})
	acquire(t, s, shared("other", store.Semaphore(2), 1)) // which requires nothing
	if err := s.Renew(t.Context(), []store.Lease{one})[0]; !errors.Is(err, store.ErrNotHeld) {
		t.Errorf("renewal of a permit that the server has lost: %v, want %v", err, store.ErrNotHeld)
	}
}

// On several servers a semaphore cannot be resized, nor have more permits than can be numbered. The errors say why, and what to do instead.
func TestSeveralServersRefuse(t *testing.T) {
	servers := redistest.StartN(t, 3)
	s := open(t, addrs(servers), nil)
	kind := store.Semaphore(2)
	r := shared("stock", kind, 1)
	g := acquire(t, s, r)
	_, large := s.Acquire(t.Context(), store.AcquireRequest{Lease: shared("other", store.Semaphore(s.Caps().MaxPermits+1), 1)})
	for err, why := range map[error]string{
		large: "3 servers",
		s.Resize(t.Context(), "stock", kind, store.Semaphore(3)): "use a semaphore with another name",
	} {
		if !errors.Is(err, store.ErrUnsupported) || !strings.Contains(err.Error(), why) {
			t.Errorf("%v, want an error that says %q", err, why)
		}
	}
	if server := servers[0]; server.Text(t, "EXISTS", "other") != "0" {
		t.Error("a request that is refused was sent")
	}
	for _, slots := range [][]int64{g.Lease.Slots, nil, {2}, {0, 1}, {-1}} {
		r.Slots = slots
		ok := slices.Equal(slots, g.Lease.Slots)
		if err := s.Renew(t.Context(), []store.Lease{r})[0]; ok != (err == nil) || err != nil && !errors.Is(err, store.ErrInvalid) {
			t.Errorf("renew with the slots %v: %v, want success: %v, or %v", slots, err, ok, store.ErrInvalid)
		}
	}
}
