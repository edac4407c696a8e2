package etcdstore_test

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/testenv/contest"
	"github.com/leasehold-dev/leasehold/internal/testenv/etcdtest"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
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
	t.Parallel()
	c := three(t)
	prefix := "conformance-" + rand.Text()
	one := func(t *testing.T) *store.Store {
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

// contend has four clients compete for a lock until stop is called. goesOn checks that each of
// them gets it again.
func contend(t *testing.T, endpoints []string) (goesOn func(what string), stop func()) {
	contended := &contest.Contest{Name: "contended", TTL: 20 * time.Second}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	var clients []store.Engine
	for range 4 {
		s := open(t, endpoints, etcdstore.Options{Timeout: 20 * time.Second})
		clients = append(clients, s)
		group.Go(func() { contended.Contend(ctx, t, s) })
	}
	goesOn = func(what string) {
		t.Helper()
		contended.GoesOn(t, what, patience, clients...)
	}
	return goesOn, func() { cancel(); group.Wait() }
}

// Locks go on, with one holder at a time and rising tokens, while the leader is killed,
// paused, and cut off from the other members or from the clients.
func TestLeaderFails(t *testing.T) {
	t.Parallel()
	c := three(t)
	goesOn, stop := contend(t, c.ProxyEndpoints())
	defer stop()
	goesOn("at first")
	if err := c.LeaderFaults(t.Context(), goesOn); err != nil {
		t.Fatal(err)
	}
	clientFaults(t, c, goesOn)
}

// Locks go on while the lead is handed over again and again. Members drop requests meanwhile.
func TestLeaderMoves(t *testing.T) {
	t.Parallel()
	c := three(t)
	goesOn, stop := contend(t, c.Endpoints())
	defer stop()
	for i := range 5 {
		leader, err := c.Leader(t.Context(), -1)
		if err != nil {
			t.Fatal(err)
		}
		next, err := native(t, c.Endpoints()).Status(t.Context(), c.Endpoints()[(leader+1)%3])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := native(t, c.Endpoints()[leader:leader+1]).MoveLeader(t.Context(), next.Header.MemberId); err != nil {
			t.Logf("move %d: %v", i, err)
		}
		goesOn("the leader was moved")
	}
}

// clientFaults cuts the leader off from the clients, which have to know the members by their
// proxies. The members still reach each other, so none of them notices.
func clientFaults(t *testing.T, c *etcdtest.Cluster, goesOn func(what string)) {
	t.Helper()
	leader, err := c.Leader(t.Context(), -1)
	if err != nil {
		t.Fatal(err)
	}
	proxy := c.Members[leader].Proxy
	for what, fail := range map[string]func(){"no answer of the leader arrives": proxy.DropReplies, "nothing reaches the leader": proxy.Blackhole, "all is late": proxy.HoldAll} {
		fail()
		goesOn(what)
		proxy.Pass()
		goesOn("the leader answers again")
	}
}

// A holder that reaches only a leader which is cut off from the others has no renewal
// confirmed that lasts until another owner has the lock.
func TestCutOffHolderIsTold(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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

// A waiter is notified through one member. If that member is cut off or paused while the
// waiter sends no request, the waiter still gets the lock before it refreshes its place.
func TestWaiterAtSilentMember(t *testing.T) {
	t.Parallel()
	c := three(t)
	for name, f := range map[string]struct{ fail, mend func(i int) error }{
		"paused":  {func(i int) error { return c.Members[i].Freeze() }, func(i int) error { return c.Members[i].Thaw() }},
		"cut off": {func(i int) error { c.Cut(i); return nil }, func(int) error { c.Heal(); return nil }},
	} {
		waiter := open(t, c.Endpoints(), etcdstore.Options{MaxTTL: time.Hour, Timeout: patience})
		etcdstore.TrustInbox(waiter) // so that it sends no request while it waits
		at := slices.Index(c.Endpoints(), etcdstore.Asks(waiter))
		holder := open(t, slices.Delete(c.Endpoints(), at, at+1), etcdstore.Options{MaxTTL: time.Hour, Timeout: patience})
		warm := request("warm "+name, time.Hour)
		acquire(t, holder, warm)
		done := waits(t, waiter, request("warm "+name, time.Hour))
		if err := holder.Release(t.Context(), store.ReleaseRequest{Lease: warm}); err != nil {
			t.Fatal(err)
		}
		gets(t, "warm", done) // which shows that the inbox is open
		l := request(name, time.Hour)
		acquire(t, holder, l)
		next := request(name, time.Hour) // it refreshes its place every 20 minutes
		done = waits(t, waiter, next)
		if etcdstore.Asks(waiter) != c.Endpoints()[at] {
			t.Fatal("the waiter asks another member by now")
		}
		if err := f.fail(at); err != nil {
			t.Fatal(err)
		}
		if err := holder.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
			t.Error(err)
		}
		start := time.Now()
		gets(t, name, done)
		t.Logf("%s: the waiter has the lock after %v", name, time.Since(start))
		if err := f.mend(at); err != nil {
			t.Fatal(err)
		}
		if err := waiter.Release(t.Context(), store.ReleaseRequest{Lease: next}); err != nil {
			t.Error(err)
		}
	}
}

// The member that is asked is removed from the cluster. Holders keep their leases, and waiters wait on.
func TestAskedMemberIsRemoved(t *testing.T) {
	t.Parallel()
	c := three(t)
	s := open(t, c.Endpoints(), etcdstore.Options{Timeout: patience})
	held := request("a", time.Minute)
	acquire(t, s, held)
	done := waits(t, s, request("a", 2*time.Second))
	asked := etcdstore.Asks(s)
	rest := slices.DeleteFunc(c.Endpoints(), func(e string) bool { return e == asked })
	client := native(t, rest)
	is, err := client.Status(t.Context(), asked)
	if err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the member is removed", func() bool {
		_, err := client.MemberRemove(t.Context(), is.Header.MemberId)
		return err == nil
	})
	for range 100 { // until the member has ended, and after that
		if err := s.Renew(t.Context(), []store.Lease{held})[0]; err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-done:
			t.Fatalf("the waiter ended: %v", err)
		default:
		}
	}
	release(t, s, held)
	gets(t, "the waiter", done)
}
