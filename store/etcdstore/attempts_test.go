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
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/etcdstore"
)

// attemptsOf calls test for kinds of locks, with two attempts of one owner.
func attemptsOf(t *testing.T, test func(t *testing.T, prefix string, first, second store.Lease)) {
	for _, kind := range []store.Kind{{}, store.Semaphore(2), store.ReadWrite} {
		t.Run(fmt.Sprint(kind), func(t *testing.T) {
			t.Parallel()
			first := as(request("a", time.Minute), kind, kind.Normal().Limit)
			first.Attempt = store.NewOwner()
			second := first
			second.Attempt = store.NewOwner()
			test(t, "attempts-"+rand.Text(), first, second)
		})
	}
}

// holds checks that a lease is held, and that no other owner gets the lock.
func holds(t *testing.T, s *store.Store, l store.Lease) {
	t.Helper()
	renewed(t, "the owner", s, []store.Lease{l})
	rival := l
	rival.Owner, rival.Attempt = store.NewOwner(), ""
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: rival}); !errors.Is(err, store.ErrBusy) {
		t.Errorf("acquire by another owner: %v, want %v", err, store.ErrBusy)
	}
}

// removes reports whether a transaction deletes a place of the lock.
func removes(req *etcdserverpb.TxnRequest, prefix string) bool {
	for _, op := range req.Success {
		if key := string(op.GetRequestDeleteRange().GetKey()); strings.HasPrefix(key, prefix+"/a/") && !strings.HasSuffix(key, "!") {
			return true
		}
	}
	return false
}

// An attempt that was given up without an answer may have got the lock, and revokes its lease. The owner
// that asks again meanwhile keeps what it is granted.
func TestLateRevokeSparesTheNextAttempt(t *testing.T) {
	attemptsOf(t, func(t *testing.T, prefix string, first, second store.Lease) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		asks, revokes, revoked := make(chan struct{}), make(chan struct{}), make(chan struct{})
		var asked, once sync.Once
		faults := grpc.WithChainUnaryInterceptor(func(c context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, o ...grpc.CallOption) error {
			if strings.HasSuffix(method, "/LeaseRevoke") {
				<-revokes
				defer once.Do(func() { close(revoked) })
			}
			err := invoke(c, method, req, reply, cc, o...)
			if txn, ok := req.(*etcdserverpb.TxnRequest); ok && writes(txn.Success, prefix+"/a/") {
				asked.Do(func() {
					cancel()
					err = context.Canceled
					close(asks)
				})
			}
			return err
		})
		s := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix, Timeout: patience, DialOptions: []grpc.DialOption{faults}})
		let := sync.OnceFunc(func() { close(revokes) })
		t.Cleanup(let) // before the store is closed
		if _, err := s.Acquire(ctx, store.AcquireRequest{Lease: first}); !errors.Is(err, context.Canceled) {
			t.Fatalf("acquire that is given up: %v", err)
		}
		<-asks
		g, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: second})
		if err != nil {
			t.Fatal(err)
		}
		let()
		<-revoked
		holds(t, s, second)
		if st, err := s.Inspect(t.Context(), "a"); err != nil || st.Token != g.Token {
			t.Errorf("token %v, %v, want %v", st.Token, err, g.Token)
		}
		release(t, s, second)
		if st, err := s.Inspect(t.Context(), "a"); err != nil || len(st.Holders) != 0 {
			t.Errorf("after the release: %+v, %v", st, err)
		}
	})
}

// A release without an answer revokes the lease. An attempt that has joined meanwhile, as the third one of
// the owner, keeps what it is granted.
func TestFailedReleaseSparesTheNextAttempt(t *testing.T) {
	attemptsOf(t, func(t *testing.T, prefix string, first, second store.Lease) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		releases, revoked := make(chan struct{}), make(chan struct{})
		var once sync.Once
		faults := grpc.WithChainUnaryInterceptor(func(c context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, o ...grpc.CallOption) error {
			if txn, ok := req.(*etcdserverpb.TxnRequest); ok && removes(txn, prefix) && ctx.Err() == nil {
				close(releases)
				<-ctx.Done()
				return ctx.Err()
			}
			if err := invoke(c, method, req, reply, cc, o...); err != nil || !strings.HasSuffix(method, "/LeaseRevoke") {
				return err
			}
			once.Do(func() { close(revoked) })
			return nil
		})
		s := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix, Timeout: patience, DialOptions: []grpc.DialOption{faults}})
		acquire(t, s, first)
		acquire(t, s, second)
		released := make(chan error, 1)
		go func() { released <- s.Release(ctx, store.ReleaseRequest{Lease: first}) }()
		<-releases
		third := first
		third.Attempt = store.NewOwner()
		acquire(t, s, third)
		cancel()
		if err := <-released; !errors.Is(err, context.Canceled) {
			t.Fatalf("release that is given up: %v", err)
		}
		<-revoked
		holds(t, s, third)
	})
}

// A waiter gives up, and the lock comes to its place before that is removed. The owner that asks again
// meanwhile keeps what it is granted.
func TestWaiterThatGivesUpSparesTheNextAttempt(t *testing.T) {
	attemptsOf(t, func(t *testing.T, prefix string, first, second store.Lease) {
		var late atomic.Bool
		leaves, goOn := make(chan struct{}), make(chan struct{})
		var once sync.Once
		hold := intercept(func(_ *etcdserverpb.TxnRequest, invoke func() error) error {
			if late.Load() {
				once.Do(func() { close(leaves) })
				<-goOn
			}
			return invoke()
		})
		gives := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix, Timeout: patience, MaxTTL: time.Hour, DialOptions: []grpc.DialOption{hold.option()}})
		let := sync.OnceFunc(func() { close(goOn) })
		t.Cleanup(let)
		etcdstore.TrustInbox(gives)
		other := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix, Timeout: patience, MaxTTL: time.Hour})
		held := first
		held.Owner, held.Attempt = store.NewOwner(), ""
		acquire(t, other, held)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		waiting, done := make(chan struct{}, 100), make(chan error, 1)
		go func() {
			_, err := gives.Wait(ctx, store.WaitRequest{Lease: first}, func(error) { waiting <- struct{}{} })
			done <- err
		}()
		<-waiting
		late.Store(true)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Fatalf("wait that is given up: %v", err)
		}
		<-leaves
		release(t, other, held)
		if _, err := other.Acquire(t.Context(), store.AcquireRequest{Lease: second}); err != nil {
			t.Fatal(err)
		}
		let()
		if err := gives.Close(); err != nil { // it waits for what is under way
			t.Error(err)
		}
		holds(t, other, second)
	})
}

// An undo of one attempt finds the place of another one that waits, and the lock comes to it before that is
// removed. The owner keeps it.
func TestUndoSparesAWaiterThatEnters(t *testing.T) {
	attemptsOf(t, func(t *testing.T, prefix string, first, second store.Lease) {
		var late atomic.Bool
		leaves, goOn := make(chan struct{}), make(chan struct{})
		hold := intercept(func(req *etcdserverpb.TxnRequest, invoke func() error) error {
			if removes(req, prefix) && late.CompareAndSwap(true, false) {
				close(leaves)
				<-goOn
			}
			return invoke()
		})
		undoes := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix, Timeout: patience, MaxTTL: time.Hour, DialOptions: []grpc.DialOption{hold.option()}})
		let := sync.OnceFunc(func() { close(goOn) })
		t.Cleanup(let)
		other := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix, Timeout: patience, MaxTTL: time.Hour})
		held := first
		held.Owner, held.Attempt = store.NewOwner(), ""
		acquire(t, other, held)
		done := waits(t, other, second)
		late.Store(true)
		undone := make(chan error, 1)
		go func() { undone <- undoes.Release(t.Context(), store.ReleaseRequest{Lease: first, Undo: true}) }()
		<-leaves
		release(t, other, held)
		gets(t, "the second attempt", done)
		let()
		if err := <-undone; !errors.Is(err, store.ErrNotHeld) {
			t.Errorf("undo of the first attempt: %v, want %v", err, store.ErrNotHeld)
		}
		holds(t, other, second)
	})
}

// attaches reports whether a transaction attaches a place of the lock that is there to another lease.
func attaches(req *etcdserverpb.TxnRequest, prefix string) bool {
	for _, op := range req.Success {
		put := op.GetRequestPut()
		if put == nil || put.Lease == 0 || !strings.HasPrefix(string(put.Key), prefix+"/a/") {
			continue
		}
		for _, is := range req.Compare {
			if string(is.Key) == string(put.Key) && is.GetCreateRevision() != 0 {
				return true
			}
		}
	}
	return false
}

// An owner that has a lock asks for it again by way of another process, and gives up. The request that
// attaches the lock to the lease of that attempt arrives later, when the lease may be almost over. The
// renewals since then count.
func TestLateJoinSparesTheHolder(t *testing.T) {
	attemptsOf(t, func(t *testing.T, prefix string, first, second store.Lease) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		goOn, late := make(chan struct{}), make(chan *etcdserverpb.TxnResponse, 1)
		faults := grpc.WithChainUnaryInterceptor(func(c context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, o ...grpc.CallOption) error {
			if txn, ok := req.(*etcdserverpb.TxnRequest); !ok || !attaches(txn, prefix) {
				return invoke(c, method, req, reply, cc, o...)
			}
			cancel()
			go func() {
				<-goOn
				answer := &etcdserverpb.TxnResponse{}
				if err := invoke(context.WithoutCancel(c), method, req, answer, cc, o...); err != nil {
					t.Error(err)
				}
				late <- answer
			}()
			return context.Canceled
		})
		holder := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix, Timeout: patience})
		joins := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix, Timeout: patience, DialOptions: []grpc.DialOption{faults}})
		g := acquire(t, holder, first)
		if _, err := joins.Acquire(ctx, store.AcquireRequest{Lease: second}); !errors.Is(err, context.Canceled) {
			t.Fatalf("acquire that is given up: %v", err)
		}
		renewed(t, "the owner", holder, []store.Lease{first})
		close(goOn)
		if answer := <-late; answer.Succeeded {
			t.Error("a renewal counts, and the lock is attached to an older lease later")
		}
		holds(t, holder, first)
		if st, err := holder.Inspect(t.Context(), "a"); err != nil || st.Token != g.Token {
			t.Errorf("token %v, %v, want %v", st.Token, err, g.Token)
		}
	})
}

// Leases of a semaphore that has become a mutex stay. Another attempt of the owner of any of them joins it.
func TestAttemptJoinsALeaseFromBeforeResize(t *testing.T) {
	prefix := "attempts-" + rand.Text()
	s := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix, Timeout: patience})
	other := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix, Timeout: patience})
	var all []store.Lease
	for range 2 {
		l := as(request("a", time.Minute), store.Semaphore(2), 1)
		l.Attempt = store.NewOwner()
		acquire(t, s, l)
		all = append(all, l)
	}
	if err := s.Resize(t.Context(), "a", store.Semaphore(2), store.Kind{}); err != nil {
		t.Fatal(err)
	}
	for i, l := range all {
		ctx, cancel := context.WithTimeout(t.Context(), patience/9)
		defer cancel()
		again := as(l, store.Kind{}, 0)
		again.Attempt = store.NewOwner()
		g, err := other.Acquire(ctx, store.AcquireRequest{Lease: again})
		if err != nil || g.Slot != int64(i) {
			t.Errorf("another attempt of holder %d: slot %d, %v", i, g.Slot, err)
		}
		renewed(t, "the other attempt of", other, []store.Lease{again})
		renewed(t, "the first attempt of", s, []store.Lease{l})
	}
}

// An attempt that waits in the queue is let in although its owner has a permit, and reads that at once,
// since the first answer is lost. It shares the permit, so that the release leaves nothing.
func TestAttemptIsLetInBesideItsOwner(t *testing.T) {
	prefix := "beside-" + rand.Text()
	first := as(request("a", time.Minute), store.Semaphore(2), 1)
	first.Attempt = store.NewOwner()
	second, heavy := first, as(request("a", time.Minute), store.Semaphore(2), 2)
	second.Attempt = store.NewOwner()
	client := native(t, server.Endpoints())
	ctx, leaves := context.WithCancel(t.Context())
	defer leaves()
	lost := false
	lose := intercept(func(req *etcdserverpb.TxnRequest, invoke func() error) error {
		err := invoke()
		if !lost && writes(req.Success, prefix+"/a/") && ctx.Err() == nil && count(t, client, prefix+"/a/") == 3 {
			lost = true
			leaves()
			eventually.True(t, "the second attempt is let in", func() bool { return count(t, client, prefix+"/!slots/a/") == 2 })
			return status.Error(codes.Unavailable, "the connection is lost")
		}
		return err
	})
	s := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix, DialOptions: []grpc.DialOption{lose.option()}})
	other := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix})
	token := acquire(t, s, first).Token
	left := make(chan error, 1)
	go func() {
		_, err := other.Wait(ctx, store.WaitRequest{Lease: heavy}, nil)
		left <- err
	}()
	eventually.True(t, "another owner waits", func() bool { return count(t, client, prefix+"/a/") == 2 })
	g, err := s.Wait(t.Context(), store.WaitRequest{Lease: second}, nil)
	if err != nil || g.Token != token {
		t.Errorf("the second attempt has token %v, %v, want %v", g.Token, err, token)
	}
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the other owner: %v", err)
	}
	if !lost {
		t.Fatal("no answer was lost, so the test shows nothing")
	}
	second.Attempt = ""
	release(t, s, second)
	eventually.True(t, "no place is left", func() bool { return count(t, client, prefix+"/a/")+count(t, client, prefix+"/!slots/a/") == 0 })
}
