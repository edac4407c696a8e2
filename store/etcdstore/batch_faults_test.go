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
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold/internal/testenv/etcdtest"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/etcdstore"
)

// leaseOf returns the lease of the place that a batch makes for a lock, or 0.
func leaseOf(batch *etcdserverpb.TxnRequest, lock string) int64 {
	for _, op := range batch.Success {
		for _, in := range op.GetRequestTxn().GetSuccess() {
			if strings.Contains(string(in.GetRequestPut().GetKey()), "/"+lock+"/") {
				return in.GetRequestPut().Lease
			}
		}
	}
	return 0
}

// jam keeps two batches under way, so that the next steps queue and go together.
type jam struct {
	waiting atomic.Int32
	pass    chan struct{}
	others  intercept // sees the other transactions
}

func (j *jam) intercept(req *etcdserverpb.TxnRequest, invoke func() error) error {
	if leaseOf(req, "jam0") != 0 || leaseOf(req, "jam1") != 0 {
		j.waiting.Add(1)
		<-j.pass
		return invoke()
	}
	return j.others(req, invoke)
}

// open opens a store that sends steps together.
func (j *jam) open(t *testing.T, endpoints []string) *store.Store {
	t.Helper()
	s := open(t, endpoints, etcdstore.Options{Prefix: "jam-" + rand.Text(), Timeout: patience, MaxTTL: time.Hour, DialOptions: []grpc.DialOption{intercept(j.intercept).option()}})
	etcdstore.SendTogether(s)
	return s
}

// during calls f while two batches are under way.
func (j *jam) during(t *testing.T, s *store.Store, f func()) {
	t.Helper()
	j.pass = make(chan struct{})
	var all sync.WaitGroup
	defer all.Wait()
	defer close(j.pass)
	for i := range int32(2) {
		all.Go(func() { acquire(t, s, request(fmt.Sprint("jam", i), time.Minute)) })
		eventually.True(t, "a batch is under way", func() bool { return j.waiting.Load() == i+1 })
	}
	f()
}

// acquireTogether acquires locks with one batch. Each has to be granted.
func (j *jam) acquireTogether(t *testing.T, s *store.Store, leases ...store.Lease) {
	t.Helper()
	var all sync.WaitGroup
	j.during(t, s, func() {
		for _, l := range leases {
			all.Go(func() {
				if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l}); err != nil {
					t.Errorf("acquire %q: %v", l.Name, err)
				}
			})
		}
		eventually.True(t, "the steps are queued", func() bool { return etcdstore.Queued(s) == len(leases) })
	})
	all.Wait()
}

// The lease of one step can end between two tries of a batch. The other steps do not take that for
// the end of their own leases: what the first try may still do is undone.
func TestLeaseOfAnotherStepEnds(t *testing.T) {
	client := native(t, server.Endpoints())
	var late *etcdserverpb.TxnRequest
	j := &jam{others: func(req *etcdserverpb.TxnRequest, invoke func() error) error {
		if a := leaseOf(req, "a"); a != 0 && leaseOf(req, "b") != 0 && late == nil {
			late = req
			if _, err := client.Revoke(t.Context(), clientv3.LeaseID(a)); err != nil {
				t.Error(err)
			}
			return status.Error(codes.Unavailable, "etcdserver: leader changed")
		}
		return invoke()
	}}
	s := j.open(t, server.Endpoints())
	b := request("b", time.Hour) // its lease does not expire meanwhile
	j.acquireTogether(t, s, request("a", time.Hour), b)
	release(t, s, b)
	eventually.True(t, "the lease of the first try is revoked", func() bool {
		r, err := client.TimeToLive(t.Context(), clientv3.LeaseID(leaseOf(late, "b")))
		if err != nil {
			t.Fatal(err)
		}
		return r.TTL < 0
	})
	// The lock a is taken by now, so this does not need its lease.
	_, _ = etcdserverpb.NewKVClient(client.ActiveConnection()).Txn(t.Context(), late)
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("b", time.Minute)}); err != nil {
		t.Errorf("acquire a lock that was released, after a late request for it: %v", err)
	}
}

// If the cluster refuses a batch of which an earlier try may have had an effect, each of its steps
// is made alone.
func TestRefusedBatchInDoubt(t *testing.T) {
	few := launch(t, etcdtest.Options{Args: []string{"--max-txn-ops=4"}})
	var once atomic.Bool
	j := &jam{others: func(req *etcdserverpb.TxnRequest, invoke func() error) error {
		if steps(req) > 2 && !once.Swap(true) {
			return status.Error(codes.Unavailable, "etcdserver: leader changed")
		}
		return invoke()
	}}
	s := j.open(t, few.Endpoints())
	j.acquireTogether(t, s, request("a", time.Minute), request("b", time.Minute), request("c", time.Minute), request("d", time.Minute))
	if !once.Load() {
		t.Error("the steps did not go together")
	}
}

// A batch has one step of a lock. Further ones do not wait for batches of their own.
func TestSecondStepOfALockGoesAlone(t *testing.T) {
	j := &jam{others: func(req *etcdserverpb.TxnRequest, invoke func() error) error { return invoke() }}
	s := j.open(t, server.Endpoints())
	acquire(t, s, request("hot", time.Minute))
	try := func() error {
		_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("hot", time.Minute)})
		return err
	}
	queued := make(chan error, 1)
	j.during(t, s, func() {
		go func() { queued <- try() }()
		eventually.True(t, "a step is queued", func() bool { return etcdstore.Queued(s) == 1 })
		second := make(chan error, 1)
		go func() { second <- try() }()
		select {
		case err := <-second:
			if !errors.Is(err, store.ErrBusy) {
				t.Errorf("second try: %v, want %v", err, store.ErrBusy)
			}
		case <-time.After(patience):
			t.Error("the second step of a lock waits for a batch")
		}
	})
	if err := <-queued; !errors.Is(err, store.ErrBusy) {
		t.Errorf("first try: %v, want %v", err, store.ErrBusy)
	}
}

// A user without the right to a lock is refused also if the process is busy. Old versions of etcd
// do not check rights to what is in nested transactions (CVE-2026-33343).
func TestRightsOfBatches(t *testing.T) {
	for version, program := range map[string]func() (string, error){"installed": etcdtest.Installed, "current": etcdtest.Current} {
		t.Run(version, func(t *testing.T) {
			c, client, enable := guarded(t, program)
			o := etcdstore.Options{Prefix: "jobs", Timeout: patience}
			rights, err := etcdstore.Use{Names: "a/", Lock: true}.Rights(urlOf(c.Endpoints()...), &o)
			if err != nil {
				t.Fatal(err)
			}
			allow(t, client, "me", rights)
			enable()
			o.Username, o.Password = "me", "secretword"
			s := open(t, c.Endpoints(), o)
			etcdstore.SendTogether(s)
			acquire(t, s, request("a/1", time.Minute))
			if _, err := s.Acquire(context.Background(), store.AcquireRequest{Lease: request("b", time.Minute)}); err == nil || !strings.Contains(err.Error(), "role grant-permission") {
				t.Errorf("acquire without the right: %v, want advice to use role grant-permission", err)
			}
		})
	}
}
