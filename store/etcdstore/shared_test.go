package etcdstore_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/etcdstore"
)

// as returns l for a lock of that kind.
func as(l store.Lease, kind store.Kind, weight int64) store.Lease {
	l.Kind, l.Weight = kind, weight
	return l
}

func reader(name string, ttl time.Duration) store.Lease {
	return as(request(name, ttl), store.ReadWrite, 1)
}

func writer(name string, ttl time.Duration) store.Lease {
	return as(request(name, ttl), store.ReadWrite, store.ReadWriteLimit)
}

func release(t *testing.T, s *store.Store, l store.Lease) {
	t.Helper()
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
		t.Fatal(err)
	}
}

// referee checks which leases are held at once, and in which order.
type referee struct {
	limit  int64 // of a semaphore
	weight atomic.Int64
	slots  [8]atomic.Int64

	readers, writers atomic.Int64
	// wrote and read are the largest tokens of a writer and of a reader.
	wrote, read atomic.Uint64
}

// permit checks a lease of a semaphore while it is held.
func (r *referee) permit(t *testing.T, l store.Lease, g store.Grant) (leave func()) {
	if w := r.weight.Add(l.Weight); w > r.limit {
		t.Errorf("permits of weight %d are held, want at most %d", w, r.limit)
	}
	if g.Slot < 0 || g.Slot >= r.limit {
		t.Errorf("slot %d, want one of %d", g.Slot, r.limit)
		return func() { r.weight.Add(-l.Weight) }
	}
	if n := r.slots[g.Slot].Add(1); n != 1 {
		t.Errorf("slot %d has %d holders, want 1", g.Slot, n)
	}
	return func() {
		r.slots[g.Slot].Add(-1)
		r.weight.Add(-l.Weight)
	}
}

// enter checks a lease of a read-write lock while it is held.
func (r *referee) enter(t *testing.T, l store.Lease, g store.Grant) (leave func()) {
	if l.SharesToken() {
		r.readers.Add(1)
		if n := r.writers.Load(); n != 0 {
			t.Errorf("%d writers beside a reader, want none", n)
		}
		if last := r.wrote.Load(); uint64(g.Token) <= last {
			t.Errorf("a reader has token %v, want one above the writer's %v", g.Token, last)
		}
		for last := r.read.Load(); uint64(g.Token) > last && !r.read.CompareAndSwap(last, uint64(g.Token)); last = r.read.Load() {
		}
		return func() { r.readers.Add(-1) }
	}
	if n := r.writers.Add(1); n != 1 {
		t.Errorf("%d writers at once, want 1", n)
	}
	if n := r.readers.Load(); n != 0 {
		t.Errorf("%d readers beside a writer, want none", n)
	}
	if last := max(r.wrote.Swap(uint64(g.Token)), r.read.Load()); uint64(g.Token) <= last {
		t.Errorf("a writer has token %v, want one above %v", g.Token, last)
	}
	return func() { r.writers.Add(-1) }
}

// lease is the n-th lease of a mix.
func (r *referee) lease(n int, ttl time.Duration) store.Lease {
	permits := store.Semaphore(r.limit)
	return []store.Lease{
		reader("rw", ttl),
		as(request("permits", ttl), permits, 1),
		writer("rw", ttl),
		as(request("permits", ttl), permits, 2),
	}[n%4]
}

// check checks a lease while it is held.
func (r *referee) check(t *testing.T, l store.Lease, g store.Grant) (leave func()) {
	if l.Kind.Shared {
		return r.enter(t, l, g)
	}
	return r.permit(t, l, g)
}

// A place that leaves notifies the waiters whose turn it is. Here waiters read the queue only
// when they refresh their places, which is too late for this test.
func TestSharedLocksThroughTheInbox(t *testing.T) {
	const workers, turns, ttl = 6, 12, 9 * time.Minute
	all := &referee{limit: 3}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	prefix := "shared-" + rand.Text()
	var stores []*store.Store
	for range 2 {
		s := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix, MaxTTL: 10 * time.Minute})
		etcdstore.TrustInbox(s)
		stores = append(stores, s)
	}
	var group sync.WaitGroup
	for i := range workers {
		s := stores[i%2]
		group.Go(func() {
			for n := range turns {
				r := store.WaitRequest{Lease: all.lease(i+n, ttl)}
				g, err := s.Wait(ctx, r, nil)
				if err != nil {
					t.Errorf("worker %d, turn %d: %v", i, n, err)
					return
				}
				leave := all.check(t, r.Lease, g)
				time.Sleep(time.Millisecond) // so that the others ask for it meanwhile
				leave()
				if err := s.Release(ctx, store.ReleaseRequest{Lease: r.Lease}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
}

// A native mutex waits until all readers have left. A reader that waits behind it is refused
// once the mutex has the lock, and the error names both kinds.
func TestNativeMutexBesideReaders(t *testing.T) {
	prefix := "readers-" + rand.Text()
	s := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix})
	client := native(t, server.Endpoints())
	session, err := concurrency.NewSession(client, concurrency.WithTTL(60))
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	m := concurrency.NewMutex(session, prefix+"/a")
	first, second := reader("a", time.Minute), reader("a", time.Minute)
	acquire(t, s, first)
	acquire(t, s, second)
	if err := m.TryLock(t.Context()); !errors.Is(err, concurrency.ErrLocked) {
		t.Fatalf("a native client beside readers: %v, want %v", err, concurrency.ErrLocked)
	}
	locked := make(chan error, 1)
	go func() { locked <- m.Lock(t.Context()) }()
	eventually.True(t, "the native client waits", func() bool { return count(t, client, prefix+"/a/") == 3 })
	_, err = s.Acquire(t.Context(), store.AcquireRequest{Lease: reader("a", time.Minute)})
	if !errors.Is(err, store.ErrBusy) {
		t.Errorf("acquire as a reader behind a native client that waits: %v, want %v", err, store.ErrBusy)
	}
	done := waits(t, s, reader("a", time.Minute))
	release(t, s, first)
	select {
	case err := <-locked:
		t.Fatalf("a native client has the lock beside a reader: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	release(t, s, second)
	gets(t, "a native client after the readers", locked)
	var kind *store.KindError
	if err := <-done; !errors.As(err, &kind) || kind.Asked != store.ReadWrite || !kind.InUse.IsMutex() || !kind.Holder.Foreign {
		t.Errorf("a reader waits behind a native client that has the lock: %v, want a *KindError that names both", err)
	}
	_, err = s.Acquire(t.Context(), store.AcquireRequest{Lease: as(request("a", time.Minute), store.Semaphore(3), 1)})
	if !errors.As(err, &kind) || !strings.Contains(err.Error(), "mutex") || !strings.Contains(err.Error(), "semaphore of 3") {
		t.Errorf("acquire a permit of a lock that a native client holds: %v, want an error that names both kinds", err)
	}
	if err := m.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	acquire(t, s, reader("a", time.Minute))
}

// A waiter that is refused because the lock has another kind leaves no place behind, which
// would keep the name in use for its kind after the holder has left.
func TestRefusedKindLeavesNoPlace(t *testing.T) {
	s := open(t, server.Endpoints(), etcdstore.Options{Prefix: "refused-kind"})
	client := native(t, server.Endpoints())
	first := request("first", time.Minute) // a lock with a waiter, so that there is an inbox
	acquire(t, s, first)
	done := waits(t, s, request("first", time.Minute))
	release(t, s, first)
	gets(t, "after the release", done)
	mutex, shared := request("a", time.Minute), reader("a", time.Minute)
	for _, l := range [][2]store.Lease{{mutex, shared}, {shared, mutex}} {
		for range 5 {
			acquire(t, s, l[0])
			l[1].Owner = store.NewOwner()
			if _, err := s.Wait(t.Context(), store.WaitRequest{Lease: l[1]}, nil); !errors.Is(err, store.ErrKindMismatch) {
				t.Fatalf("a wait for another kind: %v, want %v", err, store.ErrKindMismatch)
			}
			if n := count(t, client, "refused-kind/a/"); n != 1 {
				t.Errorf("after a %v waited for a %v: %d places, want that of the holder", l[1].Kind, l[0].Kind, n)
			}
			release(t, s, l[0])
		}
	}
}

func count(t *testing.T, c *clientv3.Client, prefix string) int64 {
	t.Helper()
	r, err := c.Get(t.Context(), prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		t.Fatal(err)
	}
	return r.Count
}

// A renewal for longer than the lease of etcd can be moves the place and its slot to
// another one.
func TestLongerLeaseKeepsItsSlot(t *testing.T) {
	prefix := "longer-" + rand.Text()
	s := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix})
	client := native(t, server.Endpoints())
	kind := store.Semaphore(2)
	l := as(request("a", 2*time.Second), kind, 1)
	g := acquire(t, s, l)
	l.TTL = time.Minute
	if err := s.Renew(t.Context(), []store.Lease{l})[0]; err != nil {
		t.Fatal(err)
	}
	r, err := client.Get(t.Context(), prefix+"/a/", clientv3.WithPrefix())
	if err != nil || len(r.Kvs) != 1 {
		t.Fatal(r, err)
	}
	// The key is named after the lease that it was attached to.
	id, err := strconv.ParseInt(strings.TrimPrefix(string(r.Kvs[0].Key), prefix+"/a/"), 16, 64)
	if err != nil || id == r.Kvs[0].Lease {
		t.Fatal(id, err)
	}
	if _, err := client.Revoke(t.Context(), clientv3.LeaseID(id)); err != nil {
		t.Fatal(err)
	}
	next := as(request("a", time.Minute), kind, 1)
	if other := acquire(t, s, next); other.Slot == g.Slot {
		t.Errorf("slot %d has two holders", g.Slot)
	}
	st, err := s.Inspect(t.Context(), "a")
	if err != nil || len(st.Holders) != 2 || st.Holders[0].Slot != g.Slot || st.Holders[0].Token != g.Token {
		t.Errorf("inspect: %+v, %v, want two holders, the first with slot %d and token %v", st, err, g.Slot, g.Token)
	}
	release(t, s, l)
	release(t, s, next)
	if n := count(t, client, prefix+"/!slots/"); n != 0 {
		t.Errorf("%d slots remain, want none", n)
	}
}

// A semaphore of one permit is a mutex. It can be given more permits while it has a holder
// and waiters, but not while a native client holds it.
func TestMutexGetsMorePermits(t *testing.T) {
	prefix := "more-" + rand.Text()
	s := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix})
	one, three := store.Semaphore(1), store.Semaphore(3)
	l := as(request("a", time.Minute), one, 1)
	g := acquire(t, s, l)
	done := waits(t, s, as(request("a", 2*time.Second), one, 1))
	if err := s.Resize(t.Context(), "a", one, three); err != nil {
		t.Fatal(err)
	}
	var kind *store.KindError
	if err := <-done; !errors.As(err, &kind) || kind.InUse != three || !kind.Asked.IsMutex() {
		t.Errorf("a waiter for the previous number of permits: %v, want a *KindError", err)
	}
	if err := s.Renew(t.Context(), []store.Lease{l})[0]; err != nil {
		t.Error(err)
	}
	slots := map[int64]bool{g.Slot: true}
	for range 2 {
		slots[acquire(t, s, as(request("a", time.Minute), three, 1)).Slot] = true
	}
	if len(slots) != 3 {
		t.Errorf("slots %v, want three", slots)
	}
	if st, err := s.Inspect(t.Context(), "a"); err != nil || st.Kind != three || len(st.Holders) != 3 || st.Token != g.Token {
		t.Errorf("inspect: %+v, %v, want three holders of a %v, and token %v", st, err, three, g.Token)
	}
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: as(request("a", time.Minute), three, 1)}); !errors.Is(err, store.ErrBusy) {
		t.Errorf("acquire a fourth permit of three: %v, want %v", err, store.ErrBusy)
	}
	release(t, s, l)
	if next := acquire(t, s, as(request("a", time.Minute), three, 1)); next.Slot != g.Slot {
		t.Errorf("slot %d, want %d, which is free", next.Slot, g.Slot)
	}

	client := native(t, server.Endpoints())
	session, err := concurrency.NewSession(client, concurrency.WithTTL(60))
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	m := concurrency.NewMutex(session, prefix+"/native")
	if err := m.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Resize(t.Context(), "native", one, three); !errors.Is(err, store.ErrUnsupported) {
		t.Errorf("resize a lock that a native client holds: %v, want %v", err, store.ErrUnsupported)
	}
	if err := m.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

// Resize meets a waiter whose turn at a mutex has come, and which has not noticed it. Its token is above that of
// the holder before it.
func TestResizeBeforeAWaiterEnters(t *testing.T) {
	prefix := "resize-" + rand.Text()
	client := native(t, server.Endpoints())
	s := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix, Timeout: patience})
	etcdstore.TrustInbox(s)
	first, second, third := request("a", time.Minute), request("a", time.Minute), request("a", 6*time.Second)
	acquire(t, s, first)
	done := waits(t, s, second)
	granted, waiting := make(chan store.Grant, 1), make(chan struct{}, 100)
	go func() {
		g, err := s.Wait(t.Context(), store.WaitRequest{Lease: third}, func(error) { waiting <- struct{}{} })
		if err != nil {
			t.Error(err)
		}
		granted <- g
	}()
	<-waiting
	release(t, s, first) // so the second enters later than the place of the third was made
	gets(t, "the second", done)
	st, err := s.Inspect(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	_, _, _, id := placeOf(t, client, prefix, second)
	if _, err := client.Revoke(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if err := s.Resize(t.Context(), "a", store.Kind{}, store.Semaphore(2)); err != nil {
		t.Fatal(err)
	}
	if g := <-granted; g.Token <= st.Token {
		t.Errorf("token %d after %d", g.Token, st.Token)
	}
}

// Release needs only the owner of a holder or a waiter, not the kind of its lock.
func TestReleaseOfAnyKindByOwner(t *testing.T) {
	prefix := "any-" + rand.Text()
	holder := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix})
	s := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix})
	held, next, last := writer("a", time.Minute), writer("a", 2*time.Second), reader("a", time.Minute)
	acquire(t, holder, held)
	released := waits(t, holder, next)
	done := waits(t, holder, last)
	for _, l := range []store.Lease{next, held} {
		err := s.Release(t.Context(), store.ReleaseRequest{Lease: store.Lease{Name: "a", Owner: l.Owner, TTL: time.Minute}})
		if waited := l.Owner == next.Owner; waited != errors.Is(err, store.ErrNotHeld) || !waited && err != nil {
			t.Errorf("release of %v: %v, want %v only for the waiter", l, err, store.ErrNotHeld)
		}
	}
	gets(t, "after both are released", done)
	if err := <-released; !errors.Is(err, store.ErrNotHeld) {
		t.Errorf("the wait of a released waiter ended with %v, want %v", err, store.ErrNotHeld)
	}
	if err := holder.Release(t.Context(), store.ReleaseRequest{Lease: held}); !errors.Is(err, store.ErrNotHeld) {
		t.Errorf("release after another handle has released: %v, want %v", err, store.ErrNotHeld)
	}
}

// An acquire of a lock that several can hold leaves nothing behind if its answer is lost,
// and cannot take a slot later.
func TestLostAnswersOfSharedLocks(t *testing.T) {
	prefix := "lost-" + rand.Text()
	s := open(t, []string{server.Members[0].ProxyAddr()}, etcdstore.Options{Prefix: prefix, Timeout: 3 * time.Second})
	other := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix})
	client := native(t, server.Endpoints())
	proxy := server.Members[0].Proxy
	defer proxy.Pass()
	acquire(t, s, request("warm", 10*time.Second)) // so that there are a connection and a lease
	kind := store.Semaphore(2)
	stays := as(request("a", time.Minute), kind, 1)
	acquire(t, other, stays)
	for _, fail := range []func(){proxy.DropReplies, proxy.HoldRequests} {
		fail()
		_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: as(request("a", 10*time.Second), kind, 1)})
		if !errors.Is(err, store.ErrQuorum) {
			t.Errorf("acquire without an answer: %v, want %v", err, store.ErrQuorum)
		}
		proxy.Pass()
		l := as(request("a", time.Minute), kind, 1)
		if _, err := other.Wait(t.Context(), store.WaitRequest{Lease: l}, nil); err != nil {
			t.Fatal(err)
		}
		if errs := other.Renew(t.Context(), []store.Lease{stays, l}); errs[0] != nil || errs[1] != nil {
			t.Errorf("a permit was taken away: %v", errs)
		}
		if n := count(t, client, prefix+"/!slots/a/"); n != 2 {
			t.Errorf("%d slots are taken, want 2", n)
		}
		release(t, other, l)
	}
}

// loseAnswer loses the answer to the first transaction that takes a slot, once armed.
type loseAnswer struct {
	armed atomic.Bool
	lost  chan struct{}
}

func (l *loseAnswer) intercept(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, o ...grpc.CallOption) error {
	err := invoke(ctx, method, req, reply, cc, o...)
	txn, ok := req.(*etcdserverpb.TxnRequest)
	if err != nil || !ok || !reply.(*etcdserverpb.TxnResponse).Succeeded {
		return err
	}
	for _, op := range txn.Success {
		if put := op.GetRequestPut(); put != nil && strings.Contains(string(put.Key), "/!slots/") && l.armed.CompareAndSwap(true, false) {
			close(l.lost)
			return status.Error(codes.Unavailable, "the test has lost the answer")
		}
	}
	return nil
}

// A waiter that enters after the holder has died, and loses the answer, has one slot in the
// end. If it gives up, nothing is left of it.
func TestLostAnswerToAWaiterThatEnters(t *testing.T) {
	client := native(t, server.Endpoints())
	for _, l := range []store.Lease{as(request("a", time.Minute), store.Semaphore(2), 2), reader("a", time.Minute)} {
		for _, givesUp := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v, gives up: %v", l.Kind, givesUp), func(t *testing.T) {
				prefix := "enters-" + rand.Text()
				lose := &loseAnswer{lost: make(chan struct{})}
				s := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix, Timeout: 30 * time.Second, DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(lose.intercept)}})
				other := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix})
				held := as(request("a", time.Minute), l.Kind, l.Kind.Limit)
				before := acquire(t, other, held)
				ctx, giveUp := context.WithCancel(t.Context())
				defer giveUp()
				told, done := make(chan struct{}, 100), make(chan error, 1)
				var g store.Grant
				l := l
				l.Owner = store.NewOwner()
				go func() {
					var err error
					g, err = s.Wait(ctx, store.WaitRequest{Lease: l}, func(error) { told <- struct{}{} })
					done <- err
				}()
				<-told
				lose.armed.Store(true)
				r, err := client.Get(t.Context(), prefix+"/a/", clientv3.WithFirstCreate()...)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := client.Revoke(t.Context(), clientv3.LeaseID(r.Kvs[0].Lease)); err != nil {
					t.Fatal(err)
				}
				select {
				case <-lose.lost:
				case <-time.After(patience):
					t.Fatal("the waiter does not enter")
				}
				if givesUp {
					giveUp()
				}
				switch err := <-done; {
				case err == nil:
					if st, err := other.Inspect(t.Context(), "a"); err != nil || len(st.Holders) != 1 || st.Token != g.Token || g.Token <= before.Token {
						t.Errorf("inspect: %+v, %v, want one holder with token %v, above %v", st, err, g.Token, before.Token)
					}
					if n := count(t, client, prefix+"/!slots/a/"); n != 1 {
						t.Errorf("%d slots are taken, want 1", n)
					}
					release(t, s, l)
				case !givesUp || !errors.Is(err, context.Canceled):
					t.Errorf("a waiter whose answer was lost: %v", err)
				}
				vanishes(t, client, prefix)
			})
		}
	}
}

// vanishes waits until a lock without holders and waiters has no keys.
func vanishes(t *testing.T, client *clientv3.Client, prefix string) {
	t.Helper()
	eventually.True(t, "a lock without holders and waiters has no keys", func() bool {
		return count(t, client, prefix+"/a/")+count(t, client, prefix+"/!slots/a/") == 0
	})
}

// A waiter that gives up while it enters holds the lock or leaves nothing behind.
func TestGivingUpWhileEntering(t *testing.T) {
	prefix := "both-" + rand.Text()
	client := native(t, server.Endpoints())
	s := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix})
	other := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix})
	granted := 0
	for i := range 30 {
		held, l := writer("a", time.Minute), reader("a", time.Minute)
		acquire(t, other, held)
		ctx, giveUp := context.WithCancel(t.Context())
		told, done := make(chan struct{}, 100), make(chan error, 1)
		go func() {
			_, err := s.Wait(ctx, store.WaitRequest{Lease: l}, func(error) { told <- struct{}{} })
			done <- err
		}()
		<-told
		var group sync.WaitGroup
		group.Go(func() {
			time.Sleep(time.Duration(i) * 200 * time.Microsecond) // so that it gives up at different moments
			giveUp()
		})
		release(t, other, held)
		group.Wait()
		if err := <-done; err == nil {
			granted++
			release(t, s, l)
		} else if !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want %v", err, context.Canceled)
		}
		vanishes(t, client, prefix)
	}
	t.Logf("%d of 30 waiters were granted the lock", granted)
}
