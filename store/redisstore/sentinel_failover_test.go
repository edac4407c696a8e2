package redisstore_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// replicated waits until the replica has all keys of the master.
func replicated(t *testing.T, master, replica *redistest.Server) {
	t.Helper()
	eventually.True(t, "the replica has all keys of the master", func() bool {
		return strings.Join(master.Keys(t), " ") == strings.Join(replica.Keys(t), " ")
	})
}

// asks repeats ask while it fails because there is no master.
func asks(t *testing.T, what string, ask func() error) {
	t.Helper()
	var err error
	eventually.True(t, what, func() bool {
		err = ask()
		return err == nil || !errors.Is(err, store.ErrQuorum)
	})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// listen waits until that number of clients listens to the server. The server skips waiters
// that do not listen when it hands on the lock.
func listen(t *testing.T, server *redistest.Server, clients int) {
	t.Helper()
	eventually.True(t, fmt.Sprintf("%d waiters can be notified by the new master", clients), func() bool {
		own := 0
		for c := range strings.SplitSeq(server.Text(t, "PUBSUB", "CHANNELS", "leasehold:to:*"), "\n") {
			if c != "" && c != "leasehold:to:all" && c != "leasehold:to:broken" {
				own++
			}
		}
		return own == clients
	})
}

// The master is killed while a lock has a holder and waiters. The replica has the lock: it
// stays held, and is handed on in order, with larger tokens.
func TestFailover(t *testing.T) {
	t.Parallel() // it mostly waits
	w := redistest.StartWatched(t, 3)
	replica := w.Replicas[0]
	one, two := openAt(t, w.URL(), nil), openAt(t, w.URL(), nil)
	held, a, b := request("stock"), waiter("stock"), waiter("stock")
	token := acquire(t, one, held).Token
	gotA := wait(t, t.Context(), two, []*redistest.Server{w.Master}, a)
	gotB := wait(t, t.Context(), one, []*redistest.Server{w.Master}, b)
	replicated(t, w.Master, replica)
	w.Sentinels[0].Kill() // two of three decide
	w.Master.Kill()
	w.Promoted(t)
	asks(t, "the lease is renewed by the new master", func() error { return one.Renew(t.Context(), []store.Lease{held})[0] })
	listen(t, replica, 2)
	asks(t, "the lock is released", func() error { return one.Release(t.Context(), store.ReleaseRequest{Lease: held, Renewed: true}) })
	g := granted(t, gotA)
	if g.Token <= token {
		t.Errorf("token %d after %d, want a larger one", g.Token, token)
	}
	mustRelease(t, two, a, g)
	next := granted(t, gotB)
	if next.Token <= g.Token {
		t.Errorf("token %d after %d, want a larger one", next.Token, g.Token)
	}
	mustRelease(t, one, b, next)
	nothingLeft(t, []*redistest.Server{replica})
}

// A lock that a promoted replica does not have is lost, as the class Efficiency allows. The
// holder learns so when it renews, and the waiter gets the lock. Its token is larger, since the clock is the
// floor of tokens, so a resource that checks tokens refuses the first holder.
func TestFailoverLosesALock(t *testing.T) {
	t.Parallel() // it mostly waits
	w := redistest.StartWatched(t, 1)
	replica := w.Replicas[0]
	one, two := openAt(t, w.URL(), nil), openAt(t, w.URL(), nil)
	held, next := request("stock"), waiter("stock")
	token := acquire(t, one, held).Token
	got := wait(t, t.Context(), two, []*redistest.Server{w.Master}, next)
	replicated(t, w.Master, replica)
	replica.Text(t, "CONFIG", "SET", "replica-read-only", "no")
	replica.Text(t, "FLUSHALL")
	w.Master.Kill()
	w.Promoted(t)
	g := granted(t, got)
	if g.Token <= token {
		t.Errorf("token %d after %d, want a larger one", g.Token, token)
	}
	var err error
	eventually.True(t, "the holder learns that it lost the lock", func() bool {
		err = one.Renew(t.Context(), []store.Lease{held})[0]
		return !errors.Is(err, store.ErrQuorum)
	})
	if !errors.Is(err, store.ErrNotHeld) {
		t.Errorf("renewal of a lease that the new master does not have: %v, want %v", err, store.ErrNotHeld)
	}
	mustRelease(t, two, next, g)
}

// A replica with min-replicas-to-write that is promoted refuses to write until it has a replica itself,
// which is mostly the old master once that is back. Waiters wait for that.
func TestPromotedMasterWithoutReplicas(t *testing.T) {
	t.Parallel() // it mostly waits
	w := redistest.Watch(t, redistest.Start(t), 1, []string{"--min-replicas-to-write", "1"})
	replica := w.Replicas[0]
	one, two := openAt(t, w.URL(), nil), openAt(t, w.URL(), nil)
	held, next, last := request("stock"), waiter("stock"), waiter("stock")
	acquire(t, one, held)
	first := wait(t, t.Context(), two, []*redistest.Server{w.Master}, next)
	replicated(t, w.Master, replica)
	w.Master.Kill()
	w.Promoted(t)
	second, told := make(chan outcome, 1), make(chan struct{})
	tell := sync.OnceFunc(func() { close(told) })
	go func() {
		g, err := one.Wait(t.Context(), store.WaitRequest{Lease: last}, func(why error) {
			if strings.Contains(why.Error(), "NOREPLICAS") {
				tell()
			}
		})
		second <- outcome{g, err}
	}()
	select {
	case <-told:
	case o := <-second:
		t.Fatalf("the wait ended with %v", o.err)
	}
	replica.Text(t, "CONFIG", "SET", "min-replicas-to-write", "0")
	listen(t, replica, 2)
	asks(t, "the lock is released", func() error { return one.Release(t.Context(), store.ReleaseRequest{Lease: held, Renewed: true}) })
	mustRelease(t, two, next, granted(t, first))
	mustRelease(t, one, last, granted(t, second))
	nothingLeft(t, []*redistest.Server{replica})
}

// A replica is promoted although the master is well, which becomes a replica. The lock and
// its waiters continue on the new master.
func TestFailoverOnOrder(t *testing.T) {
	t.Parallel() // it mostly waits
	w := redistest.StartWatched(t, 1)
	replica := w.Replicas[0]
	one, two := openAt(t, w.URL(), nil), openAt(t, w.URL(), nil)
	held, next := request("stock"), waiter("stock")
	token := acquire(t, one, held).Token
	got := wait(t, t.Context(), two, []*redistest.Server{w.Master}, next)
	replicated(t, w.Master, replica)
	w.Failover(t)
	// A client looks every second for a new master, and releases the lock on the old one
	// until then.
	eventually.True(t, "both clients have left the old master", func() bool {
		return !strings.Contains(w.Master.Text(t, "CLIENT", "LIST"), "name=leasehold")
	})
	listen(t, replica, 1)
	asks(t, "the lock is released", func() error { return one.Release(t.Context(), store.ReleaseRequest{Lease: held}) })
	g := granted(t, got)
	if g.Token <= token {
		t.Errorf("token %d after %d, want a larger one", g.Token, token)
	}
	if v := replica.Text(t, "GET", "stock"); !strings.HasPrefix(v, g.Lease.Owner) {
		t.Errorf("the lock has the value %q on the new master, want the owner of the grant", v)
	}
	mustRelease(t, two, next, g)
}

// The sentinels cannot reach the master any more, and promote the replica. The clients can
// reach the old master, which still grants locks, and leave it because of the sentinels only.
func TestMasterThatIsCutOffFromTheSentinels(t *testing.T) {
	t.Parallel() // it mostly waits
	locker := []string{"--user", "locker", "on", "nopass", "~*", "&*", "+@all"}
	w := redistest.Watch(t, redistest.Start(t, locker...), 3, locker)
	replica := w.Replicas[0]
	url := strings.Replace(w.URL(), "://", "://locker:x@", 1)
	one, two := openAt(t, url, nil), openAt(t, url, nil)
	held, next := request("stock"), waiter("stock")
	token := acquire(t, one, held).Token
	got := wait(t, t.Context(), two, []*redistest.Server{w.Master}, next)
	replicated(t, w.Master, replica)
	w.Master.Text(t, "ACL", "SETUSER", "default", "-ping", "-info", "-slaveof", "-replicaof") // the user of the sentinels
	w.Promoted(t)
	if role := w.Master.Text(t, "ROLE"); !strings.HasPrefix(role, "master") {
		t.Fatalf("the old master has the role %s, so the test shows nothing", role)
	}
	n := 0
	eventually.True(t, "locks are taken at the new master", func() bool {
		r := request(fmt.Sprint("probe/", n))
		n++
		_, err := one.Acquire(t.Context(), store.AcquireRequest{Lease: r})
		return err == nil && replica.Text(t, "EXISTS", r.Name) == "1" && w.Master.Text(t, "EXISTS", r.Name) == "0"
	})
	if err := one.Release(t.Context(), store.ReleaseRequest{Lease: held}); err != nil {
		t.Fatal(err)
	}
	g := granted(t, got)
	if g.Token <= token {
		t.Errorf("token %d after %d, want a larger one", g.Token, token)
	}
	if v := replica.Text(t, "GET", "stock"); v == "(nil)" {
		t.Error("the new master does not have the lock that was granted")
	}
	mustRelease(t, two, next, g)
}

// A master that was made a replica refuses to write, before any sentinel reports the change.
// Only that makes the client leave it here: the sentinel keeps giving its old answer. The new
// master executes the requests, a release too.
func TestDemotedMasterIsLeft(t *testing.T) {
	t.Parallel() // it mostly waits
	old, now := redistest.Start(t), redistest.Start(t)
	follow := func(s, master *redistest.Server) {
		host, port, _ := net.SplitHostPort(master.Addr())
		s.Text(t, "REPLICAOF", host, port)
		eventually.True(t, "the replica follows its master", func() bool {
			return strings.Contains(s.Text(t, "INFO", "replication"), "master_link_status:up")
		})
	}
	follow(now, old)
	sentinel := newFakeSentinel(t, old.Addr(), 1)
	sentinel.stick()
	s := openAt(t, sentinelURL(sentinel), nil)
	r := request("a")
	acquire(t, s, r)
	replicated(t, old, now)
	eventually.True(t, "the store asks over a connection that it keeps", func() bool {
		_, asked := sentinel.seen()
		return asked >= 3
	})
	sentinel.name(now.Addr(), 2)
	now.Text(t, "REPLICAOF", "NO", "ONE")
	follow(old, now)
	err := s.Release(t.Context(), store.ReleaseRequest{Lease: r})
	if err != nil && (!errors.Is(err, store.ErrQuorum) || !strings.Contains(err.Error(), "not the master any more")) {
		t.Errorf("release: %v, want none, or that the server is no master any more", err)
	}
	eventually.True(t, "the new master has released the lock", noLock(t, []*redistest.Server{now}, "a"))
	takes(t, s, []*redistest.Server{now}, request("b"))
}

// Close ends a Wait and returns during a failover, without a master.
func TestCloseWithoutAMaster(t *testing.T) {
	t.Parallel() // it mostly waits
	w := redistest.StartWatched(t, 1)
	s, err := redisstore.Open(t.Context(), w.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	held := request("stock")
	acquire(t, s, held)
	next := waiter("stock")
	got := wait(t, t.Context(), s, []*redistest.Server{w.Master}, next)
	w.Sentinels[0].Kill()
	w.Master.Kill()
	eventually.True(t, "the store has no master", func() bool {
		return redisstore.StatsOf(s).Nodes[0].Err != nil || s.Renew(t.Context(), []store.Lease{held})[0] != nil
	})
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if o := <-got; !errors.Is(o.err, store.ErrClosed) {
		t.Errorf("the wait ended with %v, want %v", o.err, store.ErrClosed)
	}
}
