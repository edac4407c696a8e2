package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// unsharded are the settings of a server that does not know sharded channels, as before Redis 7.
var unsharded = []string{"--rename-command", "SSUBSCRIBE", "", "--rename-command", "SPUBLISH", ""}

// Servers before 7 have no sharded channels, and notify waiters by plain ones.
func TestClusterWithoutShardedChannels(t *testing.T) {
	t.Parallel() // it mostly waits
	c := redistest.StartCluster(t, 3, 0, unsharded...)
	holder, other := openCluster(t, c.Masters, nil), openCluster(t, c.Masters, nil)
	held := request("stock")
	g := acquire(t, holder, held)
	requests, all := queueUp(t, c.Has(t, "stock"), "stock", other, holder)
	mustRelease(t, holder, held, store.Grant{})
	inTurn(t, g, requests, all, other, holder)
}

// Members of a cluster without sharded channels pass pushes on to each other. A member that a slot
// has moved to pushes grants to waiters that are not connected to it yet, and takes them back, since
// it has no subscriber: nobody holds the lock because of such a push.
func TestSlotMovesWithoutShardedChannels(t *testing.T) {
	t.Parallel() // it mostly waits
	c := redistest.StartCluster(t, 3, 0, unsharded...)
	holder, other, third := openCluster(t, c.Masters, nil), openCluster(t, c.Masters, nil), openCluster(t, c.Masters, nil)
	const name = "stock"
	held := request(name)
	last := acquire(t, holder, held).Token
	stores := []*store.Store{other, third, other}
	requests, all := queueUp(t, c.Has(t, name), name, stores...)
	c.Move(t, name, another(t, c, name))
	asks(t, "the holder knows of the move", func() error { return holder.Renew(t.Context(), []store.Lease{held})[0] })
	mustRelease(t, holder, held, store.Grant{})
	granted := make(chan int)
	var grants [3]store.Grant
	for i, done := range all {
		go func() {
			o := <-done
			if o.err != nil {
				t.Errorf("waiter %d: %v", i, o.err)
			}
			grants[i] = o.grant
			granted <- i
		}()
	}
	for range all { // in any order: a waiter that was skipped may come after another one
		select {
		case i := <-granted:
			if grants[i].Token <= last {
				t.Errorf("token %d after %d, want a larger one", grants[i].Token, last)
			}
			last = grants[i].Token
			mustRelease(t, stores[i], requests[i], grants[i])
		case <-time.After(soon):
			t.Fatalf("a waiter was not granted the lock within %v", soon)
		}
	}
}

// A client that may not subscribe polls.
func TestClusterWithoutPushRights(t *testing.T) {
	t.Parallel() // it mostly waits
	c := redistest.StartCluster(t, 3, 0)
	for _, s := range c.Masters {
		s.Text(t, "ACL", "SETUSER", "u", "reset", "on", ">pw", "~*", "&*", "+@all", "-ssubscribe")
	}
	holder := openCluster(t, c.Masters, nil)
	unreached, err := redisstore.Open(t.Context(), "redis-cluster://u:pw@"+c.Masters[0].Addr(), patient())
	if err != nil {
		t.Fatal(err)
	}
	defer unreached.Close()
	held, next := request("stock"), patientWaiter("stock")
	g := acquire(t, holder, held)
	done := waits(t.Context(), unreached, next)
	place := "{stock}:place:" + next.Owner
	eventually.True(t, "the waiter has a place", func() bool { return c.Has(t, "stock").Text(t, "EXISTS", place) == "1" })
	if got := c.Has(t, "stock").Text(t, "GET", place); got[0] != '1' {
		t.Errorf("the place says that the waiter can be notified: %s", got)
	}
	mustRelease(t, holder, held, store.Grant{})
	inTurn(t, g, []store.Lease{next}, []<-chan outcome{done}, unreached)
}

// A master that had no slots when the client connected notifies waiters once it has some.
func TestClusterGrows(t *testing.T) {
	t.Parallel() // it mostly waits
	c := redistest.StartCluster(t, 3, 0)
	holder, other := openCluster(t, c.Masters, nil), openCluster(t, c.Masters, nil)
	to := c.Grow(t)
	const name = "stock"
	held := request(name)
	g := acquire(t, holder, held)
	from := c.Has(t, name)
	requests, all := queueUp(t, from, name, other, other)
	m := c.BeginMove(t, name, to)
	m.Carry(t, name, "{"+name+"}:token")
	for _, s := range []*store.Store{holder, other} { // finds the lock there, over a connection without pushes
		if err := s.Renew(t.Context(), []store.Lease{held})[0]; err != nil {
			t.Fatal(err)
		}
	}
	m.End(t)
	eventually.True(t, "waiters are notified there from now on", func() bool {
		place := to.Text(t, "GET", "{"+name+"}:place:"+requests[1].Owner)
		return slices.ContainsFunc(strings.Fields(to.Text(t, "PUBSUB", "SHARDCHANNELS")), func(channel string) bool {
			return place[0] == '0' && strings.Contains(place, channel)
		})
	})
	mustRelease(t, holder, held, store.Grant{})
	inTurn(t, g, requests, all, other, other)
}

// A replica that takes over without knowing of a lock grants it again, which a cluster
// cannot prevent. The token is larger all the same.
func TestPromotedReplicaThatForgot(t *testing.T) {
	t.Parallel() // it mostly waits
	c := redistest.StartCluster(t, 3, 1, "--cluster-node-timeout", "1000", "--cluster-replica-no-failover", "yes")
	s := openCluster(t, c.Masters, nil)
	const name = "stock"
	server := c.Has(t, name)
	replica := c.Replicas[slices.Index(c.Masters, server)]
	replica.Text(t, "CONFIG", "SET", "masteruser", "nobody")
	replica.Text(t, "CONFIG", "SET", "masterauth", "wrong")
	server.Text(t, "CLIENT", "KILL", "TYPE", "replica")
	eventually.True(t, "the replica follows no more", func() bool {
		return strings.Contains(replica.Text(t, "INFO", "replication"), "master_link_status:down")
	})
	held := request(name)
	g := acquire(t, s, held)
	server.Kill()
	replica.Text(t, "CLUSTER", "FAILOVER", "TAKEOVER")
	eventually.True(t, "the replica has the slot", func() bool { return c.Has(t, name) == replica })
	var again store.Grant
	eventually.True(t, "the lock is granted again", func() (ok bool) {
		var err error
		again, err = s.Acquire(t.Context(), store.AcquireRequest{Lease: request(name)})
		if errors.Is(err, store.ErrBusy) {
			t.Fatal("the promoted replica has the lock")
		}
		return err == nil
	})
	if again.Token <= g.Token {
		t.Errorf("token %d after %d, want a larger one", again.Token, g.Token)
	}
	if err := s.Renew(t.Context(), []store.Lease{held})[0]; !errors.Is(err, store.ErrNotHeld) {
		t.Errorf("renewal by the first holder: %v, want %v", err, store.ErrNotHeld)
	}
}

// A master hands its slots to its replica and is reset, so that it knows of no other member. A client
// that has learned nothing of that finds the new master, although nobody redirects it.
func TestMemberIsReset(t *testing.T) {
	t.Parallel() // it mostly waits
	c := redistest.StartCluster(t, 3, 1)
	s := openCluster(t, c.Masters, nil)
	const name = "stock"
	r := request(name)
	acquire(t, s, r)
	old := c.Has(t, name)
	replica := c.Replicas[slices.Index(c.Masters, old)]
	replica.Text(t, "CLUSTER", "FAILOVER")
	eventually.True(t, "the replica has taken over", func() bool { return c.Has(t, name) == replica })
	old.Text(t, "CLUSTER", "RESET")
	if err := s.Renew(t.Context(), []store.Lease{r})[0]; err != nil {
		t.Errorf("renewal at the new master: %v", err)
	}
	mustRelease(t, s, r, store.Grant{})
	nothingLeft(t, []*redistest.Server{replica})
}

// Many goroutines wait for locks whose slots move from one member to another all the time.
// Each lock has one holder at a time, tokens rise, and every waiter is served.
func TestContentionWhileSlotsMove(t *testing.T) {
	t.Parallel() // it mostly waits
	for what, args := range map[string][]string{
		"sharded channels":    nil,
		"no sharded channels": unsharded,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			contendWhileSlotsMove(t, redistest.StartCluster(t, 3, 0, args...))
		})
	}
}

func contendWhileSlotsMove(t *testing.T, c *redistest.Cluster) {
	const workers, rounds, most = 5, 12, 15
	names := []string{"a", "b", "c"}
	var stores []*store.Store
	for range 3 {
		stores = append(stores, openCluster(t, c.Masters, nil))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var all sync.WaitGroup
	var moves atomic.Int32
	holders, last := make([]atomic.Int32, len(names)), make([]atomic.Uint64, len(names))
	work := func(i, w int) error {
		s := stores[w%len(stores)]
		for n := 0; n < rounds || moves.Load() < most; n++ {
			r := waiter(names[i])
			g, err := s.Wait(ctx, store.WaitRequest{Lease: r}, nil)
			if err != nil {
				return err
			}
			if holders[i].Add(1) != 1 {
				return errors.New("two holders at once")
			}
			if before := last[i].Swap(uint64(g.Token)); before >= uint64(g.Token) {
				return fmt.Errorf("token %d after %d, want a larger one", g.Token, before)
			}
			time.Sleep(time.Millisecond)
			holders[i].Add(-1)
			if err := s.Release(ctx, store.ReleaseRequest{Lease: g.Lease}); err != nil {
				return fmt.Errorf("release: %w", err)
			}
		}
		return nil
	}
	for i := range names {
		for w := range workers {
			all.Go(func() {
				if err := work(i, w); err != nil {
					t.Errorf("lock %s: %v", names[i], err)
				}
			})
		}
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	for over := false; !over; moves.Add(1) {
		name := names[int(moves.Load())%len(names)]
		eventually.True(t, "all members know which of them has the slot", func() bool { return c.Has(t, name) != nil })
		c.Move(t, name, another(t, c, name))
		select {
		case <-done:
			over = true
		case <-time.After(20 * time.Millisecond):
		}
	}
	t.Logf("%d moves", moves.Load())
}

// Over TLS the members are found at their ports for it, and given the same certificates.
func TestClusterOverTLS(t *testing.T) {
	t.Parallel()
	cert, key := redistest.SelfSigned(t, t.TempDir())
	port := freePort(t)
	c := redistest.StartCluster(t, 1, 0, "--tls-cluster", "yes", "--tls-port", port, "--cluster-port", freePort(t), "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "yes")
	q := url.Values{"tls_ca": {cert}, "tls_cert": {cert}, "tls_key": {key}}
	s, err := redisstore.Open(t.Context(), "rediss-cluster://127.0.0.1:"+port+"?"+q.Encode(), patient())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	held := request("stock")
	g := acquire(t, s, held)
	requests, all := queueUp(t, c.Masters[0], "stock", s)
	mustRelease(t, s, held, store.Grant{})
	inTurn(t, g, requests, all, s)
	for _, n := range redisstore.StatsOf(s).Nodes {
		if n.Err != nil || n.Node != "127.0.0.1:"+port {
			t.Errorf("a node of the statistics is %+v, want 127.0.0.1:%s without an error", n, port)
		}
	}
}

// Close ends a Wait, removes its place, and leaves no goroutine. Close does not wait long,
// so a busy machine can keep it from removing the place, but hardly five times in a row.
func TestClusterIsClosed(t *testing.T) {
	t.Parallel() // it mostly waits
	c := redistest.StartCluster(t, 3, 0)
	holder := openCluster(t, c.Masters, nil)
	acquire(t, holder, request("stock"))
	for range 5 {
		s := openCluster(t, c.Masters, nil)
		requests, all := queueUp(t, c.Has(t, "stock"), "stock", s)
		before := time.Now()
		s.Close()
		s.Close()
		if o := <-all[0]; !errors.Is(o.err, store.ErrClosed) {
			t.Errorf("the wait ended with %v, want %v", o.err, store.ErrClosed)
		}
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("a")}); !errors.Is(err, store.ErrClosed) {
			t.Errorf("acquire: %v, want %v", err, store.ErrClosed)
		}
		if took := time.Since(before); took > long {
			t.Errorf("closing took %v, want at most %v", took, long)
		}
		for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
			if !placed(t, c.Has(t, "stock"), requests[0]) {
				return
			}
		}
	}
	t.Error("no closed store has removed its place")
}
