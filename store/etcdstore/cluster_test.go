package etcdstore_test

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/testenv/etcdtest"
	"github.com/leasehold-dev/leasehold/internal/validity"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/etcdstore"
	"github.com/leasehold-dev/leasehold/store/storetest"
)

// patience bounds the wait for something that has to come.
const patience = 90 * time.Second

// three starts a cluster of three members of a current etcd, for tests that harm it.
func three(t *testing.T) *etcdtest.Cluster {
	t.Helper()
	program, err := etcdtest.Current()
	if err != nil {
		t.Fatal(err)
	}
	c, err := etcdtest.Launch(etcdtest.Options{Program: program, Members: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func request(name string, ttl time.Duration) store.Lease {
	return store.Lease{Name: name, Owner: store.NewOwnerAt(time.Now()), Meta: store.Holder{Host: "h", PID: 1}.Encode(), TTL: ttl}
}

// On three members of a current version the store keeps the contract, and gives the class
// consensus.
func TestClusterConforms(t *testing.T) {
	c := three(t)
	prefix := "conformance-" + rand.Text()
	one := func(t *testing.T) store.Store {
		return open(t, c.Endpoints(), etcdstore.Options{Prefix: prefix, Timeout: patience})
	}
	s := open(t, c.Endpoints(), etcdstore.Options{Prefix: prefix})
	if class := s.Caps().Class; class != store.Consensus {
		t.Errorf("class %v, want consensus", class)
	}
	l := request("required", time.Minute)
	l.Require = store.Consensus
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l}); err != nil {
		t.Error(err)
	}
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
		t.Error(err)
	}
	storetest.Run(t, one, storetest.Options{Second: one})
}

// crowd takes turns at one lock with several stores, and checks that no two hold it and
// that tokens rise.
type crowd struct {
	inside atomic.Int32
	last   atomic.Uint64
	turns  []atomic.Int64 // of each worker
}

func (c *crowd) work(ctx context.Context, t *testing.T, s *etcdstore.Store, me int) {
	const ttl = 20 * time.Second
	for ctx.Err() == nil {
		r := store.WaitRequest{Lease: request("crowd", ttl)}
		start := clock.System().Now()
		g, err := s.Wait(ctx, r, nil)
		if err != nil {
			if !errors.Is(err, context.Canceled) && !errors.Is(err, store.ErrQuorum) {
				t.Errorf("wait: %v", err)
			}
			continue
		}
		if n := c.inside.Add(1); n != 1 {
			t.Errorf("%d holders at once", n)
		}
		if before := c.last.Swap(uint64(g.Token)); uint64(g.Token) <= before {
			t.Errorf("token %v after %v", g.Token, before)
		}
		c.inside.Add(-1)
		if clock.System().Now() >= validity.Until(start.Add(g.Since), ttl) {
			t.Log("the machine was too slow: a lease was over at the end of its turn")
		}
		c.turns[me].Add(1)
		if err := s.Release(ctx, store.ReleaseRequest{Lease: r.Lease}); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, store.ErrQuorum) {
			t.Errorf("release: %v", err)
		}
	}
}

// more waits until every worker has had so many more turns.
func (c *crowd) more(t *testing.T, n int64, when string) {
	t.Helper()
	var want []int64
	for i := range c.turns {
		want = append(want, c.turns[i].Load()+n)
	}
	start := time.Now()
	defer func() { t.Logf("%s: %v", when, time.Since(start)) }()
	end := time.Now().Add(patience)
	for i := range c.turns {
		for c.turns[i].Load() < want[i] {
			if time.Now().After(end) {
				t.Fatalf("%s: worker %d waits since %v", when, i, patience)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// Locks go on, with one holder at a time and rising tokens, while the leader is killed,
// paused, and cut off from the other members.
func TestLeaderFails(t *testing.T) {
	c := three(t)
	all := &crowd{turns: make([]atomic.Int64, 4)}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	for i := range all.turns {
		s := open(t, c.Endpoints(), etcdstore.Options{Timeout: 20 * time.Second})
		group.Go(func() { all.work(ctx, t, s, i) })
	}
	all.more(t, 5, "at first")
	all.faults(t, c)
}

// faults harms the leader in turns, while everybody goes on.
func (all *crowd) faults(t *testing.T, c *etcdtest.Cluster) {
	t.Helper()
	for _, f := range []struct {
		name        string
		fail, mend  func(leader int) error
		hasNoLeader bool
	}{
		{name: "killed", fail: func(i int) error { c.Members[i].Kill(); return nil }, mend: func(i int) error { return c.Members[i].Restart() }},
		{name: "paused", fail: func(i int) error { return c.Members[i].Freeze() }, mend: func(i int) error { return c.Members[i].Thaw() }},
		{name: "cut off", fail: func(i int) error { c.Cut(i); return nil }, mend: func(i int) error { c.Heal(); return nil }},
	} {
		leader, err := c.Leader(t.Context(), -1)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.fail(leader); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Leader(t.Context(), leader); err != nil {
			t.Fatal(err)
		}
		all.more(t, 5, "leader "+f.name)
		if err := f.mend(leader); err != nil {
			t.Fatal(err)
		}
		all.more(t, 5, "leader back that was "+f.name)
	}
}

// A holder that reaches only a leader which is cut off from the others has no renewal
// confirmed that lasts until another owner has the lock.
func TestCutOffHolderIsTold(t *testing.T) {
	cutOffHolderIsTold(t, func(ttl time.Duration) (held, waits store.Lease) {
		return request("told", ttl), request("told", ttl)
	})
}

func cutOffHolderIsTold(t *testing.T, leases func(ttl time.Duration) (held, waits store.Lease)) {
	c := three(t)
	leader, err := c.Leader(t.Context(), -1)
	if err != nil {
		t.Fatal(err)
	}
	const ttl = 3 * time.Second
	holder := open(t, c.Endpoints()[leader:leader+1], etcdstore.Options{})
	others := open(t, c.Endpoints(), etcdstore.Options{})
	l, next := leases(ttl)
	until := validity.Until(clock.System().Now(), ttl)
	if _, err := holder.Acquire(t.Context(), store.AcquireRequest{Lease: l}); err != nil {
		t.Fatal(err)
	}
	c.Cut(leader)
	defer c.Heal()
	got := make(chan clock.Instant, 1)
	go func() {
		defer close(got)
		if _, err := others.Wait(t.Context(), store.WaitRequest{Lease: next}, nil); err != nil {
			t.Error(err)
			return
		}
		got <- clock.System().Now()
	}()
	for {
		sent := clock.System().Now()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		if holder.Renew(short, []store.Lease{l})[0] == nil {
			until = validity.Until(sent, ttl)
		}
		cancel()
		select {
		case at := <-got:
			if at < until {
				t.Errorf("another owner had the lock %v before the validity of the holder ended", until.Sub(at))
			}
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// A member that accepts requests and does not answer, or cannot be reached, delays a
// request and does not fail it. A holder keeps its lease.
func TestMemberDoesNotAnswer(t *testing.T) {
	c := three(t)
	s := open(t, c.ProxyEndpoints(), etcdstore.Options{Timeout: 30 * time.Second})
	held := request("held", time.Minute)
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: held}); err != nil {
		t.Fatal(err)
	}
	for i, m := range c.Members {
		for _, fail := range []func(){m.Proxy.Blackhole, func() { m.Proxy.RefuseNew(); m.Proxy.Cut() }} {
			fail()
			l := request("next", time.Minute)
			if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l}); err != nil {
				t.Errorf("member %d: acquire: %v", i, err)
			}
			if err := s.Renew(t.Context(), []store.Lease{l, held}); err[0] != nil || err[1] != nil {
				t.Errorf("member %d: renew: %v", i, err)
			}
			if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
				t.Errorf("member %d: release: %v", i, err)
			}
			m.Proxy.Pass()
		}
	}
}
