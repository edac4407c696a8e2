package redisstore_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
)

// anHour is longer than any test waits.
const anHour = time.Hour

// breakInTime breaks a lease through by, and checks that its holder is told long before its
// next renewal.
func breakInTime(t *testing.T, lease *leasehold.Lease, by *leasehold.Client) {
	t.Helper()
	if told, took := breaks(t, lease, by); told > anHour/4 || took > anHour/4 {
		t.Errorf("told after %v, released after %v", told, took)
	}
}

// acquired returns a lease of the lock that lasts for an hour.
func acquired(t *testing.T, l *leasehold.Lock) *leasehold.Lease {
	t.Helper()
	lease, err := l.With(leasehold.LockOptions{TTL: anHour}).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// The holder of a lock of any kind in a cluster is notified of a break at once, whether or not the
// servers know sharded channels.
func TestBreakIsPushedInACluster(t *testing.T) {
	t.Parallel() // it mostly waits
	for what, args := range map[string][]string{
		"sharded channels":    nil,
		"no sharded channels": unsharded,
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := redistest.StartCluster(t, 3, 0, args...)
			holder := leasehold.New(openClusterFor(t, anHour, c.Masters[:1]), nil)
			by := leasehold.New(openClusterFor(t, anHour, c.Masters[1:2]), nil)
			for what, l := range map[string]*leasehold.Lock{
				"a mutex":  holder.Mutex("{mutex}%"),
				"a permit": holder.Semaphore("permit", 2),
				"a writer": holder.RW("writer").Write(),
				"a reader": holder.RW("reader").Read(),
			} {
				t.Run(what, func(t *testing.T) { breakInTime(t, acquired(t, l), by) })
			}
		})
	}
}

// A lease is broken wherever its slot is, and its holder, which does not know of the move,
// is notified.
func TestBreakWhileSlotsMove(t *testing.T) {
	t.Parallel() // it mostly waits
	c := redistest.StartCluster(t, 3, 0)
	holder, by := leasehold.New(openClusterFor(t, anHour, c.Masters), nil), leasehold.New(openClusterFor(t, anHour, c.Masters), nil)
	lease := acquired(t, holder.Mutex("stock"))
	c.Move(t, "stock", another(t, c, "stock"))
	breakInTime(t, lease, by)

	s := openCluster(t, c.Masters, nil)
	for _, r := range []store.Lease{request("mutex"), {Name: "permit", Owner: store.NewOwner(), TTL: time.Minute, Kind: store.Semaphore(2)}} {
		acquire(t, s, r)
		b := breakOf(t, s, r)
		m := c.BeginMove(t, r.Name, another(t, c, r.Name))
		done := breaksWhileMoving(t, c, b)
		m.End(t)
		if err := <-done; errors.Is(err, store.ErrQuorum) { // this machine is slow
			asks(t, "the lease is broken", func() error { _, err := s.BreakLease(t.Context(), b); return err })
		} else if err != nil {
			t.Fatal(err)
		}
		asks(t, "the lease is shown", func() error {
			st, err := s.Inspect(t.Context(), r.Name)
			if err == nil && (st.Broken == nil || st.Broken.Owner != r.Owner) {
				t.Errorf("%s: shown is %+v", r.Name, st)
			}
			return err
		})
		if err := s.Renew(t.Context(), []store.Lease{r})[0]; !errors.Is(err, store.ErrNotHeld) {
			t.Errorf("%s: renewal: %v", r.Name, err)
		}
	}
}

// breaksWhileMoving breaks a lease whose slot is moving, and returns once a request to acquire
// that began later has been given up. The break is not given up as soon.
func breaksWhileMoving(t *testing.T, c *redistest.Cluster, b store.BreakRequest) <-chan error {
	t.Helper()
	s := openCluster(t, c.Masters, &redisstore.Options{NodeTimeout: time.Second})
	start, done := time.Now(), make(chan error, 1)
	go func() {
		_, err := s.BreakLease(t.Context(), b)
		if err != nil && time.Since(start) < 5*time.Second && strings.Contains(err.Error(), "slot is moving") {
			t.Errorf("given up after %v: %v", time.Since(start), err)
		}
		done <- err
	}()
	eventually.True(t, "an acquire of the moving lock has failed for certain", func() bool {
		_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request(b.Name)})
		return errors.Is(err, store.ErrQuorum) && !errors.Is(err, store.ErrAmbiguous) || errors.Is(err, store.ErrKindMismatch)
	})
	return done
}

// A lease that was broken stays so when its master hands over to the replica. The client of a
// holder loses its channel by that. It subscribes again, although the holder is idle, and the
// holder learns of the next break at once.
func TestBreakAfterAMasterHandsOver(t *testing.T) {
	t.Parallel() // it mostly waits
	c := redistest.StartCluster(t, 3, 1)
	const name = "stock"
	before := store.Lease{Name: name, Owner: store.NewOwner(), TTL: anHour, Kind: store.Semaphore(2)}
	s := openClusterFor(t, anHour, c.Masters)
	acquire(t, s, before)
	if left, err := s.BreakLease(t.Context(), breakOf(t, s, before)); err != nil || left <= 0 {
		t.Fatalf("left %v, error %v, want a lease that is broken and not over", left, err)
	}
	s.Close()
	lease := acquired(t, leasehold.New(openClusterFor(t, anHour, c.Masters), nil).Semaphore(name, 2))
	server := c.Has(t, name)
	channel := ""
	eventually.True(t, "only the holder's client is subscribed", func() bool {
		channel = server.Text(t, "PUBSUB", "SHARDCHANNELS")
		return len(strings.Fields(channel)) == 1
	})
	c.Replicas[slices.Index(c.Masters, server)].Text(t, "CLUSTER", "FAILOVER")
	eventually.True(t, "the replica has the slot", func() bool {
		has := c.Has(t, name)
		return has != nil && has != server
	})
	eventually.True(t, "the holder's client is subscribed again", func() bool {
		now := server.Text(t, "PUBSUB", "SHARDCHANNELS")
		return now != "" && now != channel
	})
	s = openClusterFor(t, anHour, c.Masters)
	if err := s.Renew(t.Context(), []store.Lease{before})[0]; !errors.Is(err, store.ErrNotHeld) {
		t.Errorf("renewal of a lease that was broken: got error %v, want store.ErrNotHeld", err)
	}
	if st, err := s.Inspect(t.Context(), name); err != nil || len(st.Holders) != 2 || !st.Holders[0].Holder.Broken || st.Broken == nil {
		t.Errorf("inspect: got %+v, error %v, want two holders, the first one with a broken lease", st, err)
	}
	breakInTime(t, lease, leasehold.New(s, nil))
}

// A replica that takes over without knowing of a break renews the lease, until the lease is
// broken again.
func TestPromotedReplicaThatForgotABreak(t *testing.T) {
	t.Parallel() // it mostly waits
	c := redistest.StartCluster(t, 3, 1, "--cluster-node-timeout", "1000", "--cluster-replica-no-failover", "yes")
	s := openClusterFor(t, anHour, c.Masters)
	r := request("stock")
	r.TTL = anHour
	acquire(t, s, r)
	b := breakOf(t, s, r)
	server := c.Has(t, r.Name)
	replica := c.Replicas[slices.Index(c.Masters, server)]
	eventually.True(t, "the replica has the lease", func() bool {
		return offset(t, server, "master_repl_offset") == offset(t, replica, "slave_repl_offset")
	})
	replica.Text(t, "CONFIG", "SET", "masteruser", "nobody")
	replica.Text(t, "CONFIG", "SET", "masterauth", "wrong")
	server.Text(t, "CLIENT", "KILL", "TYPE", "replica")
	eventually.True(t, "it follows no more", func() bool {
		return strings.Contains(replica.Text(t, "INFO", "replication"), "master_link_status:down")
	})
	if left, err := s.BreakLease(t.Context(), b); err != nil || left <= 0 {
		t.Fatalf("%v, %v", left, err)
	}
	server.Kill()
	replica.Text(t, "CLUSTER", "FAILOVER", "TAKEOVER")
	eventually.True(t, "the replica has the slot", func() bool { return c.Has(t, r.Name) == replica })
	asks(t, "the lease is renewed", func() error { return s.Renew(t.Context(), []store.Lease{r})[0] })
	asks(t, "the lease is broken again", func() error { _, err := s.BreakLease(t.Context(), b); return err })
	if err := s.Renew(t.Context(), []store.Lease{r})[0]; !errors.Is(err, store.ErrNotHeld) {
		t.Errorf("renewal: %v", err)
	}
}

// In a cluster, too, a client that may not use the channel learns of it at its next renewal, and
// one that may not publish breaks leases all the same. Waiters do not depend on it.
func TestBreakInAClusterWithoutRights(t *testing.T) {
	t.Parallel() // it mostly waits
	c := redistest.StartCluster(t, 3, 0)
	r := ruled{t: t, servers: c.Masters, patience: long}
	rule, err := redisadmin.ACL{User: "locker", Uses: redisadmin.ToLock, Cluster: true}.Rule()
	if err != nil {
		t.Fatal(err)
	}
	for _, lacks := range []string{"+subscribe", "+publish"} {
		t.Run(lacks, func(t *testing.T) {
			less := slices.DeleteFunc(slices.Clone(rule), func(word string) bool { return word == lacks })
			if len(less) != len(rule)-1 {
				t.Fatalf("%q without %q is %q", rule, lacks, less)
			}
			r.apply(less)
			open := func() *store.Store {
				s, err := redisstore.Open(t.Context(), "redis-cluster://locker:pw@"+c.Masters[0].Addr(), patient())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { s.Close() })
				return s
			}
			s := open()
			broken(t, leasehold.New(s, nil), leasehold.New(open(), nil), 3*time.Second, 0)
			if err := (ruled{t, []*redistest.Server{c.Has(t, "a")}, "", long}).waits(s, "a"); err != nil {
				t.Error(err)
			}
		})
	}
}
