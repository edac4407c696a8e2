package etcdstore_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
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

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/etcdstore"
)

// breakOf returns the request to break the lease of l, which is held.
func breakOf(t *testing.T, s *store.Store, l store.Lease) store.BreakRequest {
	t.Helper()
	st, err := s.Inspect(t.Context(), l.Name)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range st.Holdings() {
		if h.Holder.Owner == l.Owner {
			return store.BreakRequest{Name: l.Name, Owner: l.Owner, Token: h.Token, By: "me", Reason: "it hangs"}
		}
	}
	t.Fatalf("%q is not held by %s: %+v", l.Name, l.Owner, st)
	return store.BreakRequest{}
}

func breaks(t *testing.T, s *store.Store, r store.BreakRequest) (left time.Duration) {
	t.Helper()
	left, err := s.BreakLease(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// eachKind are leases of the lock "a": of a mutex, a permit, a reader and a writer.
func eachKind() []store.Lease {
	return []store.Lease{request("a", time.Minute), as(request("a", time.Minute), store.Semaphore(2), 1), reader("a", time.Minute), writer("a", time.Minute)}
}

// intercept sees the transactions of a store.
type intercept func(req *etcdserverpb.TxnRequest, invoke func() error) error

func (f intercept) option() grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, o ...grpc.CallOption) error {
		call := func() error { return invoke(ctx, method, req, reply, cc, o...) }
		if txn, ok := req.(*etcdserverpb.TxnRequest); ok {
			return f(txn, call)
		}
		return call()
	})
}

// writes reports whether the operations put a key that contains part.
func writes(ops []*etcdserverpb.RequestOp, part string) bool {
	for _, op := range ops {
		if strings.Contains(string(op.GetRequestPut().GetKey()), part) {
			return true
		}
	}
	return false
}

// A request to acquire that the network delivers a second time, after the lease was broken
// and is over, does not bring it back.
func TestBrokenLeaseIsNotBroughtBack(t *testing.T) {
	client := native(t, server.Endpoints())
	kv := etcdserverpb.NewKVClient(client.ActiveConnection())
	for _, l := range eachKind() {
		for _, waits := range []bool{false, true} {
			for _, now := range []bool{false, true} {
				t.Run(fmt.Sprintf("%v, weight %d, waits: %v, now: %v", l.Kind, l.Weight, waits, now), func(t *testing.T) {
					prefix := "back-" + rand.Text()
					var mu sync.Mutex
					var sent []*etcdserverpb.TxnRequest
					record := intercept(func(req *etcdserverpb.TxnRequest, invoke func() error) error {
						mu.Lock()
						sent = append(sent, req)
						mu.Unlock()
						return invoke()
					})
					take := func() (all []*etcdserverpb.TxnRequest) {
						mu.Lock()
						defer mu.Unlock()
						all, sent = sent, nil
						return all
					}
					s := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix, DialOptions: []grpc.DialOption{record.option()}})
					other := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix})
					l := l
					l.Owner = store.NewOwner()
					if waits {
						s.NotifyBroken(func(string) {})
						acquire(t, s, request("first", time.Minute)) // it has an inbox now, so it enqueues at once
					}
					take()
					if waits {
						if _, err := s.Wait(t.Context(), store.WaitRequest{Lease: l}, nil); err != nil {
							t.Fatal(err)
						}
					} else {
						acquire(t, s, l)
					}
					late := take()
					b := breakOf(t, other, l)
					b.Now = now
					breaks(t, other, b)
					if !now {
						release(t, s, l)
					}
					if left := breaks(t, other, b); left != 0 {
						t.Fatalf("the lease lasts for %v", left)
					}
					again := func() int64 {
						t.Helper()
						for _, req := range late {
							if _, err := kv.Txn(t.Context(), req); err != nil {
								t.Fatal(err)
							}
						}
						return count(t, client, prefix+"/a/")
					}
					if n := again(); n != 0 {
						t.Errorf("%d places after a late request", n)
					}
					_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l})
					if !errors.Is(err, store.ErrNotHeld) || !strings.Contains(err.Error(), "was broken") {
						t.Errorf("another request of the owner: %v", err)
					}
					_, err = s.Wait(t.Context(), store.WaitRequest{Lease: l}, nil)
					if !errors.Is(err, store.ErrNotHeld) || !strings.Contains(err.Error(), "was broken") {
						t.Errorf("a wait of the owner: %v", err)
					}
					if n := count(t, client, prefix+"/a/") + count(t, client, prefix+"/!slots/"); n != 0 {
						t.Errorf("%d keys after requests of the owner", n)
					}
					// The key that the break has left behind refuses these requests.
					if _, err := client.Delete(t.Context(), prefix+"/!broken/a/"+l.Owner); err != nil {
						t.Fatal(err)
					}
					if n := again(); n != 1 {
						t.Errorf("%d places after a late request that nothing refuses", n)
					}
				})
			}
		}
	}
}

// A break whose answer is lost has happened once. Its note is kept, and with Now the waiter
// has the lock.
func TestLostAnswerOfABreak(t *testing.T) {
	for _, l := range eachKind() {
		for _, now := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v, weight %d, now: %v", l.Kind, l.Weight, now), func(t *testing.T) {
				prefix := "lostbreak-" + rand.Text()
				var lost atomic.Int32
				lose := intercept(func(req *etcdserverpb.TxnRequest, invoke func() error) error {
					err := invoke()
					if err == nil && writes(req.Success, "/!broken/") && lost.Add(1) == 1 {
						return status.Error(codes.Unavailable, "the test has lost the answer")
					}
					return err
				})
				s := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix})
				breaker := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix, Timeout: patience, DialOptions: []grpc.DialOption{lose.option()}})
				acquire(t, s, l)
				next := l
				next.Owner, next.Weight = store.NewOwner(), l.Kind.Limit
				done := waits(t, s, next)
				b := breakOf(t, s, l)
				b.Now = now
				if left := breaks(t, breaker, b); (left == 0) != now {
					t.Errorf("the lease lasts for %v", left)
				}
				if lost.Load() == 0 {
					t.Error("no answer was lost")
				}
				st, err := s.Inspect(t.Context(), "a")
				if err != nil || st.Broken == nil || st.Broken.Owner != l.Owner || st.Broken.Token != b.Token || st.Broken.Reason != "it hangs" {
					t.Errorf("%+v, %v", st, err)
				}
				if err := s.Renew(t.Context(), []store.Lease{l})[0]; !errors.Is(err, store.ErrNotHeld) {
					t.Errorf("renewal: %v", err)
				}
				if !now {
					release(t, s, l)
				}
				gets(t, "after the break", done)
				release(t, s, next)
			})
		}
	}
}

// A holder that was told reads its lease before it keeps it alive, so that the lease ends
// when BreakLease has said. A message without a break costs nothing else.
func TestNotifiedHolderDoesNotExtendItsLease(t *testing.T) {
	prefix := "told-" + rand.Text()
	var keepAlives atomic.Int32
	counting := grpc.WithChainStreamInterceptor(func(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, o ...grpc.CallOption) (grpc.ClientStream, error) {
		if strings.HasSuffix(method, "/LeaseKeepAlive") {
			keepAlives.Add(1)
		}
		return streamer(ctx, d, cc, method, o...)
	})
	client := native(t, server.Endpoints())
	for _, l := range eachKind() {
		l.Name = fmt.Sprint(l.Kind, l.Weight)
		t.Run(l.Name, func(t *testing.T) {
			s := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix, DialOptions: []grpc.DialOption{counting}})
			other := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix})
			told := make(chan string, 1000)
			stop := s.NotifyBroken(func(owner string) { told <- owner })
			acquire(t, s, l)
			hears := func(tell func()) {
				t.Helper()
				for end := time.Now().Add(patience); ; {
					tell() // again, since the first message may come before the watch
					select {
					case owner := <-told:
						if owner != l.Owner {
							t.Errorf("told of %s", owner)
						}
						return
					case <-time.After(100 * time.Millisecond):
						if time.Now().After(end) {
							t.Fatal("the holder is not told")
						}
					}
				}
			}
			b := breakOf(t, other, l)
			hears(func() {
				r, err := client.Get(t.Context(), prefix+"/"+l.Name+"/", clientv3.WithPrefix())
				if err != nil || len(r.Kvs) != 1 {
					t.Fatal(r, err)
				}
				box := inboxOf(t, r.Kvs[0].Value, prefix) + strings.TrimPrefix(string(r.Kvs[0].Key), prefix+"/"+l.Name+"/")
				if _, err := client.Put(t.Context(), box, fmt.Sprintf(`{"c":%d,"x":%q}`, r.Kvs[0].CreateRevision, l.Owner)); err != nil {
					t.Fatal(err)
				}
			})
			keepAlives.Store(0) // the store has also looked for a proxy so
			if err := s.Renew(t.Context(), []store.Lease{l})[0]; err != nil {
				t.Errorf("a false message ends a lease: %v", err)
			}
			if n := keepAlives.Swap(0); n != 1 {
				t.Errorf("a renewal after a false message takes %d streams of keep-alives, want 1", n)
			}
			for len(told) > 0 {
				<-told
			}
			hears(func() { breaks(t, other, b) })
			if err := s.Renew(t.Context(), []store.Lease{l})[0]; !errors.Is(err, store.ErrNotHeld) {
				t.Errorf("renewed: %v", err)
			}
			if keepAlives.Load() != 0 {
				t.Error("the lease was kept alive after its holder was told")
			}
			if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
				t.Error(err)
			}
			stop()
			stop()
		})
	}
}

// inboxOf returns the prefix of the inbox that the value of a place names.
func inboxOf(t *testing.T, value []byte, prefix string) string {
	t.Helper()
	_, rest, ok := strings.Cut(string(value), `"process":"`)
	process, _, _ := strings.Cut(rest, `"`)
	if !ok {
		t.Fatalf("the place names no inbox: %s", value)
	}
	return prefix + "/!inbox/" + process + "/"
}

// A waiter whose turn has come, and whose lease is broken before it notices, gets no lock.
// The request with which it takes the lock is delivered after the break.
func TestBreakBeforeTheWaiterNotices(t *testing.T) {
	prefix := "unnoticed-" + rand.Text()
	client := native(t, server.Endpoints())
	taking, goOn := make(chan struct{}), make(chan struct{})
	deliver := sync.OnceFunc(func() { close(goOn) })
	defer deliver()
	var once sync.Once
	hold := intercept(func(req *etcdserverpb.TxnRequest, invoke func() error) error {
		if len(req.Success) == 1 && req.Success[0].GetRequestPut().GetIgnoreValue() { // it takes the lock over
			once.Do(func() { close(taking) })
			<-goOn
		}
		return invoke()
	})
	s := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix, DialOptions: []grpc.DialOption{hold.option()}})
	other := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix})
	held, l := request("a", time.Minute), request("a", time.Minute)
	acquire(t, other, held)
	done := waits(t, s, l)
	r, err := client.Get(t.Context(), prefix+"/a/", clientv3.WithFirstCreate()...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Revoke(t.Context(), clientv3.LeaseID(r.Kvs[0].Lease)); err != nil {
		t.Fatal(err)
	}
	select {
	case <-taking:
	case <-time.After(patience):
		t.Fatal("the waiter does not notice that the holder is gone")
	}
	b := breakOf(t, other, l)
	breaks(t, other, b)
	deliver()
	select {
	case err := <-done:
		if !errors.Is(err, store.ErrNotHeld) || !strings.Contains(err.Error(), "was broken") {
			t.Errorf("a waiter whose lease was broken: %v", err)
		}
	case <-time.After(patience):
		t.Fatal("a waiter whose lease was broken waits")
	}
	vanishes(t, client, prefix)
	if left := breaks(t, other, b); left != 0 {
		t.Errorf("the lease lasts for %v", left)
	}
}

// A break ends no other lease of the holder's process, which uses etcd leases again,
// and none that the owner had later. Compaction does not matter.
func TestBreakSparesOtherLocks(t *testing.T) {
	prefix := "spares-" + rand.Text()
	client := native(t, server.Endpoints())
	s := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix})
	other := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix})
	place := func(name string) (key string, lease clientv3.LeaseID) {
		t.Helper()
		r, err := client.Get(t.Context(), prefix+"/"+name+"/", clientv3.WithPrefix())
		if err != nil || len(r.Kvs) != 1 {
			t.Fatal(r, err)
		}
		if _, err := client.Compact(t.Context(), r.Header.Revision); err != nil {
			t.Fatal(err)
		}
		return strings.TrimPrefix(string(r.Kvs[0].Key), prefix+"/"+name+"/"), clientv3.LeaseID(r.Kvs[0].Lease)
	}
	beside := []store.Lease{request("beside", time.Minute), as(request("permits", time.Minute), store.Semaphore(2), 1)}
	for _, l := range beside {
		acquire(t, s, l)
	}
	for _, l := range eachKind() {
		acquire(t, s, l)
		key, lease := place("a")
		b := breakOf(t, other, l)
		breaks(t, other, b)
		release(t, s, l) // the lease can be used again
		next := as(request("next", time.Minute), l.Kind, l.Weight)
		acquire(t, s, next)
		if again, _ := place("next"); again != key {
			t.Errorf("the lease was not used again: %s, %s", again, key)
		}
		later := l
		later.Owner = store.NewOwner()
		acquire(t, other, later)
		for _, b.Now = range []bool{false, true} {
			if left := breaks(t, other, b); left != 0 {
				t.Errorf("the lease lasts for %v", left)
			}
		}
		if ttl, err := client.TimeToLive(t.Context(), lease); err != nil || ttl.TTL <= 0 {
			t.Errorf("the etcd lease has ended: %+v, %v", ttl, err)
		}
		for i, err := range s.Renew(t.Context(), append(beside, next)) {
			if err != nil {
				t.Errorf("renewal %d: %v", i, err)
			}
		}
		if err := other.Renew(t.Context(), []store.Lease{later})[0]; err != nil {
			t.Errorf("a later lease: %v", err)
		}
		release(t, s, next)
		release(t, other, later)

		l.Owner = store.NewOwner()
		acquire(t, s, l)
		_, lease = place("a")
		b = breakOf(t, other, l)
		b.Now = true
		breaks(t, other, b)
		if ttl, err := client.TimeToLive(t.Context(), lease); err != nil || ttl.TTL <= 0 {
			t.Errorf("the etcd lease has ended with the lock: %+v, %v", ttl, err)
		}
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); !errors.Is(err, store.ErrNotHeld) {
			t.Errorf("release after the break: %v", err)
		}
	}
	for i, err := range s.Renew(t.Context(), beside) {
		if err != nil {
			t.Errorf("renewal %d: %v", i, err)
		}
	}
}

// An owner that uses its name again can acquire the lock with another attempt.
func TestBreakRefusesOneAttempt(t *testing.T) {
	s := open(t, server.Endpoints(), etcdstore.Options{Prefix: "attempt-" + rand.Text()})
	for _, l := range eachKind() {
		l.Owner, l.Attempt = "me", store.NewOwner()
		acquire(t, s, l)
		b := breakOf(t, s, l)
		b.Now = true
		breaks(t, s, b)
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l}); !errors.Is(err, store.ErrNotHeld) {
			t.Errorf("the attempt whose lease was broken: %v", err)
		}
		l.Attempt = store.NewOwner()
		acquire(t, s, l)
		release(t, s, l)
	}
}

// A lease that was broken is not made a reader's, and has no further tokens.
func TestBrokenLeaseDoesNotChange(t *testing.T) {
	s := open(t, server.Endpoints(), etcdstore.Options{Prefix: "unchanged-" + rand.Text(), MaxTTL: time.Hour})
	for _, l := range eachKind() {
		acquire(t, s, l)
		b := breakOf(t, s, l)
		breaks(t, s, b)
		longer := l
		longer.TTL = time.Hour
		for range 2 {
			if err := s.Renew(t.Context(), []store.Lease{longer})[0]; !errors.Is(err, store.ErrNotHeld) {
				t.Errorf("renewal: %v", err)
			}
		}
		if l.Weight == store.ReadWriteLimit {
			if _, err := s.Downgrade(t.Context(), l); !errors.Is(err, store.ErrNotHeld) {
				t.Errorf("downgrade: %v", err)
			}
		}
		if again := breakOf(t, s, l); again.Token != b.Token {
			t.Errorf("the token has changed from %v to %v", b.Token, again.Token)
		}
		release(t, s, l)
	}
}

// The lock of another kind of client is left alone, and the error says why.
func TestBreakOfNativeMutex(t *testing.T) {
	prefix := "nativebreak-" + rand.Text()
	s := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix})
	client := native(t, server.Endpoints())
	session, err := concurrency.NewSession(client, concurrency.WithTTL(60))
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	m := concurrency.NewMutex(session, prefix+"/a")
	if err := m.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, now := range []bool{false, true} {
		_, err := s.BreakLease(t.Context(), store.BreakRequest{Name: "a", Owner: m.Key(), Token: 1, Now: now})
		if !errors.Is(err, store.ErrUnsupported) || !strings.Contains(err.Error(), "another kind of client") {
			t.Error(err)
		}
		st, err := s.Inspect(t.Context(), "a")
		if err != nil || !st.Holder.Foreign {
			t.Fatalf("%+v, %v", st, err)
		}
		err = leasehold.New(s, nil).Operator().Break(t.Context(), leasehold.BreakRequest{Name: "a", Token: st.Token, Now: now})
		if !errors.Is(err, leasehold.ErrUnsupported) {
			t.Error(err)
		}
	}
	// It has its turn behind a lease that is broken.
	l := request("b", time.Minute)
	acquire(t, s, l)
	locked := make(chan error, 1)
	after := concurrency.NewMutex(session, prefix+"/b")
	go func() { locked <- after.Lock(t.Context()) }()
	eventually.True(t, "the native client waits", func() bool { return count(t, client, prefix+"/b/") == 2 })
	b := breakOf(t, s, l)
	breaks(t, s, b)
	select {
	case err := <-locked:
		t.Fatalf("a native client has the lock of a holder that was not told: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	b.Now = true
	breaks(t, s, b)
	gets(t, "a native client behind a lease that was broken", locked)
	for _, m := range []*concurrency.Mutex{m, after} {
		if err := m.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// A holder that leaves, or leaves and comes again, while its lease is broken does one of the
// two. The waiter gets the lock once.
func TestBreakWhileTheHolderLeaves(t *testing.T) {
	prefix := "leaves-" + rand.Text()
	client := native(t, server.Endpoints())
	s := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix})
	other := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix})
	for i := range 40 {
		l := eachKind()[i%4]
		next := l
		next.Owner, next.Weight = store.NewOwner(), l.Kind.Limit
		acquire(t, s, l)
		done := waits(t, other, next)
		b := breakOf(t, other, l)
		b.Now = i/4%2 == 0
		again := l
		again.Owner = store.NewOwner()
		queued := false
		var group sync.WaitGroup
		group.Go(func() {
			time.Sleep(time.Duration(i/8) * 300 * time.Microsecond) // so that it happens at all moments
			_, err := other.BreakLease(t.Context(), b)
			if err != nil && !errors.Is(err, store.ErrNotHeld) {
				t.Errorf("break: %v", err)
			}
		})
		var err error
		queued, err = s.ReleaseAndRejoin(t.Context(), store.ReleaseRequest{Lease: l}, store.WaitRequest{Lease: again})
		if err != nil && !errors.Is(err, store.ErrNotHeld) {
			t.Errorf("release: %v", err)
		}
		group.Wait()
		gets(t, "after the break", done)
		if err := other.Renew(t.Context(), []store.Lease{next})[0]; err != nil {
			t.Errorf("the next holder: %v", err)
		}
		release(t, other, next)
		if queued {
			if _, err := s.Wait(t.Context(), store.WaitRequest{Lease: again}, nil); err != nil {
				t.Fatal(err)
			}
			release(t, s, again)
		}
		vanishes(t, client, prefix)
	}
}

// Over etcd the holder is notified at once: its next renewal would be due after minutes, for
// which the test does not wait.
func TestBreakNotifiesTheHolderInEtcd(t *testing.T) {
	prefix := "tells-" + rand.Text()
	o := etcdstore.Options{Prefix: prefix, MaxTTL: time.Hour}
	c, other := leasehold.New(open(t, server.Endpoints(), o), nil), leasehold.New(open(t, server.Endpoints(), o), nil)
	held, done := make(chan leasehold.Token, 1), make(chan error, 1)
	go func() {
		done <- c.Mutex("a").With(leasehold.LockOptions{TTL: time.Hour}).Do(t.Context(), func(ctx context.Context, l *leasehold.Lease) error {
			held <- l.Token()
			<-ctx.Done()
			return nil
		})
	}()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := other.Operator().Break(ctx, leasehold.BreakRequest{Name: "a", Token: <-held, Reason: "it hangs"}); err != nil {
		t.Fatal(err)
	}
	var lost *leasehold.LostError
	if err := <-done; !errors.As(err, &lost) || lost.Cause != leasehold.LostDenied {
		t.Errorf("the holder has %v", err)
	}
}
