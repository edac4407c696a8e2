package etcdstore_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
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

// attachedTo returns the lease to which the only key of the lock is attached.
func attachedTo(t *testing.T, client *clientv3.Client, name string) clientv3.LeaseID {
	t.Helper()
	r, err := client.Get(t.Context(), "leasehold/"+name+"/", clientv3.WithPrefix())
	if err != nil || len(r.Kvs) != 1 {
		t.Fatalf("keys of %s: %v, %v, want 1", name, r, err)
	}
	return clientv3.LeaseID(r.Kvs[0].Lease)
}

// After a change of the leader, many holders move to new leases in few transactions, and no holder
// reads all others that share its lock.
func TestManyHoldersMove(t *testing.T) {
	t.Parallel()
	c := three(t)
	var transactions, ofAll atomic.Int32
	count := intercept(func(req *etcdserverpb.TxnRequest, invoke func() error) error {
		transactions.Add(1)
		for _, op := range req.Success {
			if r := op.GetRequestRange(); r != nil && len(r.RangeEnd) > 0 && r.Limit == 0 {
				ofAll.Add(1)
			}
		}
		return invoke()
	})
	s := open(t, c.Endpoints(), etcdstore.Options{Timeout: patience, DialOptions: []grpc.DialOption{count.option()}})
	var mutexes, readers []store.Lease
	for i := range 300 {
		l := request(fmt.Sprint(i), time.Minute)
		acquire(t, s, l)
		mutexes = append(mutexes, l)
	}
	for range 50 {
		l := request("read by many", time.Minute)
		l.Kind, l.Weight = store.Kind{Limit: 100, Shared: true}, 1
		acquire(t, s, l)
		readers = append(readers, l)
	}
	client := native(t, c.Endpoints())
	before := leasesOf(t, client)
	newLeader(t, c)
	for what, all := range map[string][]store.Lease{"mutexes": mutexes, "readers": readers} {
		transactions.Store(0)
		ofAll.Store(0)
		renewed(t, "under another leader", s, all)
		t.Logf("%d %s: %d transactions", len(all), what, transactions.Load())
		if n := ofAll.Load(); n > 0 {
			t.Errorf("%d requests for %d %s read all of a lock", n, len(all), what)
		}
		if n := int(transactions.Load()); what == "mutexes" && n > len(all)/2 {
			t.Errorf("%d transactions for %d mutexes, want at most one for two", n, len(all))
		}
	}
	r, err := client.Get(t.Context(), "leasehold/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range r.Kvs {
		if before[clientv3.LeaseID(kv.Lease)] {
			t.Fatalf("%s is attached to a lease of before", kv.Key)
		}
	}
}

// A member that was sent a snapshot of the data, and no entry of the log since, does not have a
// keep-alive counted in the term of before.
func TestTermAfterASnapshot(t *testing.T) {
	t.Parallel()
	program, err := etcdtest.Current()
	if err != nil {
		t.Fatal(err)
	}
	c, err := etcdtest.Launch(etcdtest.Options{Program: program, Members: 3, Args: []string{"--snapshot-count=10", "--snapshot-catchup-entries=5"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	leader, err := c.Leader(t.Context(), -1)
	if err != nil {
		t.Fatal(err)
	}
	behind, next := (leader+1)%3, (leader+2)%3
	at := func(member int) []string { return c.Endpoints()[member : member+1] }
	s := open(t, at(behind), etcdstore.Options{Timeout: patience})
	l := request("held", time.Minute)
	acquire(t, s, l)
	client := native(t, at(next))
	before := attachedTo(t, client, "held")
	c.Cut(behind)
	write := func() {
		for i := range 30 { // more than the log keeps
			if _, err := client.Put(t.Context(), "other", fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	write()
	is, err := client.Status(t.Context(), at(next)[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := native(t, at(leader)).MoveLeader(t.Context(), is.Header.MemberId); err != nil {
		t.Fatal(err)
	}
	write()
	c.Heal()
	renewed(t, "by a member that was behind", s, []store.Lease{l})
	if attachedTo(t, client, "held") == before {
		t.Error("the keep-alive counted in a term that was over")
	}
}

// Data of a backup begin with an early term. The leases in them were granted in other terms.
func TestTermAfterABackup(t *testing.T) {
	t.Parallel()
	c := launch(t, etcdtest.Options{})
	m := c.Members[0]
	restart := func() {
		t.Helper()
		m.Kill()
		if err := m.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 { // each begins a term
		restart()
	}
	s := open(t, c.Endpoints(), etcdstore.Options{Timeout: patience})
	l := request("held", time.Minute)
	acquire(t, s, l)
	backup, err := m.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Restore(backup); err != nil {
		t.Fatal(err)
	}
	client := native(t, c.Endpoints())
	for range 3 {
		before := attachedTo(t, client, "held")
		renewed(t, "in restored data", s, []store.Lease{l})
		if attachedTo(t, client, "held") == before {
			t.Error("the keep-alive of a lease of another term counted")
		}
		restart()
	}
}

// A holder moves although the lease that the store has in reserve is gone.
func TestNewLeaseIsGone(t *testing.T) {
	t.Parallel()
	c := three(t)
	client := native(t, c.Endpoints())
	s := open(t, c.Endpoints(), etcdstore.Options{Timeout: patience})
	held, used := request("held", time.Minute), request("used", time.Minute)
	acquire(t, s, held)
	newLeader(t, c)
	acquire(t, s, request("tells the store", 30*time.Second))
	before := leasesOf(t, client)
	acquire(t, s, used)
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: used}); err != nil {
		t.Fatal(err)
	}
	reserve := 0
	for id := range leasesOf(t, client) {
		if before[id] {
			continue
		}
		if _, err := client.Revoke(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		reserve++
	}
	if reserve != 1 {
		t.Fatalf("%d leases in reserve, want 1", reserve)
	}
	renewed(t, "without the lease in reserve", s, []store.Lease{held})
}

// A waiter to which the lock comes while the cluster grants no new lease keeps its place.
func TestWaiterKeepsItsPlaceWithoutANewLease(t *testing.T) {
	t.Parallel()
	c := three(t)
	var refuses atomic.Bool
	refuse := grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if refuses.Load() && strings.HasSuffix(method, "/LeaseGrant") {
			<-ctx.Done()
			return ctx.Err()
		}
		return invoke(ctx, method, req, reply, cc, opts...)
	})
	const ttl = 10 * time.Second
	holds := open(t, c.Endpoints(), etcdstore.Options{Timeout: patience})
	s := open(t, c.Endpoints(), etcdstore.Options{Timeout: time.Second, DialOptions: []grpc.DialOption{refuse}})
	first := request("a", ttl)
	acquire(t, holds, first)
	acquire(t, s, request("starts the inbox", ttl))
	mine := first
	mine.Owner = store.NewOwner()
	got := waits(t, s, mine)
	behind := first
	behind.Owner = store.NewOwner()
	later := waits(t, holds, behind)
	newLeader(t, c)
	age(t, holds, ttl, []store.Lease{first})
	refuses.Store(true)
	if err := holds.Release(t.Context(), store.ReleaseRequest{Lease: first}); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-later:
		t.Fatalf("the waiter behind got the lock: %v", err)
	case err := <-got:
		t.Fatalf("the waiter got the lock for less than its TTL, or gave up: %v", err)
	case <-time.After(3 * time.Second): // several time limits
	}
	refuses.Store(false)
	gets(t, "with a new lease", got)
}

// The leader changes while a holder moves to a lease in reserve, which the next leader keeps alive.
// The holder moves once more.
func TestTermChangesDuringAMove(t *testing.T) {
	t.Parallel()
	c := three(t)
	var changes atomic.Bool
	change := intercept(func(req *etcdserverpb.TxnRequest, invoke func() error) error {
		if writes(req.Success, "/held/") && changes.CompareAndSwap(true, false) {
			newLeader(t, c)
		}
		return invoke()
	})
	s := open(t, c.Endpoints(), etcdstore.Options{Timeout: patience, DialOptions: []grpc.DialOption{change.option()}})
	held, used := request("held", time.Minute), request("used", time.Minute)
	acquire(t, s, held)
	newLeader(t, c)
	acquire(t, s, request("tells the store", 30*time.Second))
	acquire(t, s, used)
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: used}); err != nil {
		t.Fatal(err)
	}
	// A lease in reserve is kept alive once it is older than the second that it lasts beyond the TTL.
	time.Sleep(1100 * time.Millisecond)
	changes.Store(true)
	renewed(t, "while the leader changes", s, []store.Lease{held})
	if changes.Load() {
		t.Fatal("the holder did not move")
	}
	r, err := native(t, c.Endpoints()).Get(t.Context(), "leasehold/held/", clientv3.WithPrefix())
	if err != nil || len(r.Kvs) != 1 {
		t.Fatal(r, err)
	}
	var is struct{ Term uint64 }
	if err := json.Unmarshal(r.Kvs[0].Value, &is); err != nil || is.Term != r.Header.RaftTerm {
		t.Errorf("the holder has a lease of term %d (%v), want %d", is.Term, err, r.Header.RaftTerm)
	}
}

// A request that makes a place comes twice: an answer was lost, and the first one is delivered after the
// place has moved to another lease and was released. It finds no lease, and makes no place that nobody
// would end.
func TestLateRequestAfterAMove(t *testing.T) {
	t.Parallel()
	prefix, client := "late-"+rand.Text(), native(t, server.Endpoints())
	var late *etcdserverpb.TxnRequest
	lose := intercept(func(req *etcdserverpb.TxnRequest, invoke func() error) error {
		if late == nil && writes(req.Success, prefix+"/a/") {
			late = req
			return status.Error(codes.Unavailable, "the connection is lost")
		}
		return invoke()
	})
	s := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix, Timeout: patience, MaxTTL: time.Hour, DialOptions: []grpc.DialOption{lose.option()}})
	l := request("a", 10*time.Minute)
	acquire(t, s, l)
	l.TTL = 20 * time.Minute
	renewed(t, "for longer", s, []store.Lease{l})
	release(t, s, l)
	eventually.True(t, "the late request is refused", func() bool {
		r, err := etcdserverpb.NewKVClient(client.ActiveConnection()).Txn(t.Context(), late)
		if err == nil && r.Succeeded {
			if _, err := client.Delete(t.Context(), prefix+"/a/", clientv3.WithPrefix()); err != nil {
				t.Fatal(err)
			}
		}
		return err != nil
	})
	if n := count(t, client, prefix+"/a/"); n != 0 {
		t.Errorf("%d places, want none", n)
	}
}
