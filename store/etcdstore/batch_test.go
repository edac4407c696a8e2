package etcdstore_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold/internal/testenv/contest"
	"github.com/leasehold-dev/leasehold/internal/testenv/etcdtest"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/etcdstore"
	"github.com/leasehold-dev/leasehold/store/storetest"
)

// A store that sends its steps together conforms.
func TestBatchesConform(t *testing.T) {
	t.Parallel()
	prefix := "batches-conform-" + rand.Text()
	one := func(t *testing.T) *store.Store {
		s := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix, Timeout: patience})
		etcdstore.SendTogether(s)
		return s
	}
	storetest.Run(t, one, storetest.Options{Second: one})
}

// steps returns how many steps a request has: those of a batch are transactions.
func steps(t *etcdserverpb.TxnRequest) (n int) {
	for _, op := range t.Success {
		if op.GetRequestTxn() == nil || len(t.Compare) > 0 {
			return 1
		}
		n++
	}
	return n
}

// What many goroutines do at the same time goes to the cluster together.
func TestStepsGoTogether(t *testing.T) {
	var requests, made, most atomic.Int64
	count := intercept(func(req *etcdserverpb.TxnRequest, invoke func() error) error {
		n := int64(steps(req))
		requests.Add(1)
		made.Add(n)
		for was := most.Load(); n > was && !most.CompareAndSwap(was, n); was = most.Load() {
		}
		return invoke()
	})
	s := open(t, server.Endpoints(), etcdstore.Options{Prefix: "together", DialOptions: []grpc.DialOption{count.option()}})
	const goroutines, turns = 64, 10
	requests.Store(0)
	made.Store(0)
	var all sync.WaitGroup
	for i := range goroutines {
		all.Go(func() {
			for range turns {
				l := request(fmt.Sprint(i), time.Minute)
				acquire(t, s, l)
				release(t, s, l)
			}
		})
	}
	all.Wait()
	if n := made.Load(); n < 2*goroutines*turns {
		t.Errorf("%d steps were seen, want at least %d", n, 2*goroutines*turns)
	}
	if n := requests.Load(); n > goroutines*turns {
		t.Errorf("%d requests for %d steps, want at most half as many", n, 2*goroutines*turns)
	}
	if n := most.Load(); n > 32 {
		t.Errorf("a batch of %d steps, want at most 32", n)
	}
}

// If the cluster refuses a batch, each of its steps is made alone.
func TestRefusedBatch(t *testing.T) {
	few := launch(t, etcdtest.Options{Args: []string{"--max-txn-ops=4"}})
	var refused atomic.Int64
	count := intercept(func(req *etcdserverpb.TxnRequest, invoke func() error) error {
		err := invoke()
		if errors.Is(rpctypes.Error(err), rpctypes.ErrTooManyOps) {
			refused.Add(1)
		}
		return err
	})
	s := open(t, few.Endpoints(), etcdstore.Options{Timeout: patience, DialOptions: []grpc.DialOption{count.option()}})
	etcdstore.SendTogether(s)
	eventually.True(t, "a batch is refused", func() bool {
		var all sync.WaitGroup
		for i := range 16 {
			all.Go(func() {
				l := request(fmt.Sprint(i), time.Minute)
				acquire(t, s, l)
				release(t, s, l)
			})
		}
		all.Wait()
		return refused.Load() > 0
	})
}

// A step whose context ends while it waits for others to be sent is not sent.
func TestCancelledBeforeItIsSent(t *testing.T) {
	var holds, sent atomic.Bool
	var waiting atomic.Int32
	pass := make(chan struct{})
	hold := intercept(func(req *etcdserverpb.TxnRequest, invoke func() error) error {
		if holds.Load() {
			waiting.Add(1)
			<-pass
		}
		for _, op := range req.Success {
			if writes(op.GetRequestTxn().GetSuccess(), "cancelled") {
				sent.Store(true)
			}
		}
		return invoke()
	})
	s := open(t, server.Endpoints(), etcdstore.Options{Prefix: "before-it-is-sent-" + rand.Text(), Timeout: patience, DialOptions: []grpc.DialOption{hold.option()}})
	etcdstore.SendTogether(s)
	holds.Store(true)
	var all sync.WaitGroup
	for i := range int32(2) { // as many batches are under way at once
		all.Go(func() {
			acquire(t, s, request(fmt.Sprint(i), time.Minute))
		})
		eventually.True(t, "a batch is under way", func() bool { return waiting.Load() == i+1 })
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := s.Acquire(ctx, store.AcquireRequest{Lease: request("cancelled", time.Minute)})
		done <- err
	}()
	eventually.True(t, "the step is queued", func() bool { return etcdstore.Queued(s) == 1 })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("acquire: %v, want %v", err, context.Canceled)
	}
	holds.Store(false)
	close(pass)
	all.Wait()
	acquire(t, s, request("last", time.Minute))
	if sent.Load() {
		t.Error("a request was sent after its context had ended")
	}
}

// A step that is queued, or sent with others, has an answer within the store's time limit.
func TestTimeLimitOfSteps(t *testing.T) {
	var holds atomic.Bool
	pass := make(chan struct{})
	hold := intercept(func(req *etcdserverpb.TxnRequest, invoke func() error) error {
		if holds.Load() {
			<-pass
		}
		return invoke()
	})
	s := open(t, server.Endpoints(), etcdstore.Options{Prefix: "time-limit-" + rand.Text(), Timeout: time.Second, DialOptions: []grpc.DialOption{hold.option()}})
	etcdstore.SendTogether(s)
	holds.Store(true)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			_, err := s.Acquire(context.Background(), store.AcquireRequest{Lease: request(fmt.Sprint(i), time.Minute)})
			if q, is := errors.AsType[*store.QuorumError](err); !is || q.Count(store.TimedOut) != 1 {
				t.Errorf("acquire: %v, want a time-out", err)
			}
		})
	}
	all.Wait()
	holds.Store(false)
	close(pass)
}

// Locks that a process asks for in batches have one holder at a time and rising tokens, and go on,
// while the leader is killed, paused, and cut off from the other members or from the clients.
func TestLeaderFailsDuringBatches(t *testing.T) {
	t.Parallel()
	c := three(t)
	var locks [3]contest.Contest
	for i := range locks {
		locks[i].Name, locks[i].TTL = fmt.Sprint("lock ", i), 20*time.Second
	}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	var clients []store.Engine
	for range 2 {
		s := open(t, c.ProxyEndpoints(), etcdstore.Options{Timeout: 20 * time.Second})
		etcdstore.SendTogether(s)
		clients = append(clients, s)
		for first := range 9 {
			group.Go(func() {
				for i := first; ctx.Err() == nil; i++ {
					locks[i%len(locks)].Try(ctx, t, s)
				}
			})
		}
	}
	goesOn := func(what string) {
		t.Helper()
		contest.AllGoOn(t, what, patience, []*contest.Contest{&locks[0], &locks[1], &locks[2]}, clients...)
	}
	goesOn("at first")
	if err := c.LeaderFaults(t.Context(), goesOn); err != nil {
		t.Fatal(err)
	}
	clientFaults(t, c, goesOn)
}
