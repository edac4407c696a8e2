package redisstore_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// another returns a master that does not have the slot of a key.
func another(t *testing.T, c *redistest.Cluster, key string) *redistest.Server {
	t.Helper()
	has := c.Has(t, key)
	return c.Masters[slices.IndexFunc(c.Masters, func(s *redistest.Server) bool { return s != has })]
}

// queueUp makes a waiter of each store queue for a lock, in order, and returns their outcomes.
func queueUp(t *testing.T, server *redistest.Server, name string, stores ...*store.Store) (requests []store.Lease, all []<-chan outcome) {
	t.Helper()
	for _, s := range stores {
		r := patientWaiter(name)
		requests = append(requests, r)
		all = append(all, wait(t, t.Context(), s, []*redistest.Server{server}, r))
	}
	return requests, all
}

// inTurn checks that the waiters are granted the lock in their order, soon after it was
// released, and with larger tokens each time.
func inTurn(t *testing.T, last store.Grant, requests []store.Lease, all []<-chan outcome, stores ...*store.Store) {
	t.Helper()
	for i, done := range all {
		g := grantedSoon(t, done)
		if g.Token <= last.Token {
			t.Errorf("token %d after %d, want a larger one", g.Token, last.Token)
		}
		if owner := g.Lease.Owner; owner != requests[i].Owner {
			t.Errorf("the grant is for the owner %s, want %s", owner, requests[i].Owner)
		}
		last = g
		mustRelease(t, stores[i], requests[i], g)
	}
}

// A slot moves while a lock in it is held and waited for. The lease stays, and each waiter
// keeps its place and is notified at its turn, although no waiter makes a call that would
// reveal the move.
func TestSlotMovesWhileALockIsHeld(t *testing.T) {
	t.Parallel() // it mostly waits
	c := redistest.StartCluster(t, 3, 0)
	holder, other, third := openCluster(t, c.Masters[:1], nil), openCluster(t, c.Masters[1:], nil), openCluster(t, c.Masters, nil)
	const name = "stock"
	held := request(name)
	g := acquire(t, holder, held)
	from, to := c.Has(t, name), another(t, c, name)
	stores := []*store.Store{other, third, other}
	requests, all := queueUp(t, from, name, stores...)
	c.Move(t, name, to)
	if err := holder.Renew(t.Context(), []store.Lease{held})[0]; err != nil {
		t.Fatalf("the lease was lost when its slot moved: %v", err)
	}
	if keys := from.Keys(t); len(keys) > 0 {
		t.Errorf("the old member still has the keys %q", keys)
	}
	mustRelease(t, holder, held, store.Grant{})
	inTurn(t, g, requests, all, stores...)
	nothingLeft(t, c.Masters)
}

// While a slot is being moved, leases in it are renewed wherever they are, no lease counts
// as lost, and calls that cannot be executed yet are executed after the move.
func TestSlotBeingMoved(t *testing.T) {
	t.Parallel() // it mostly waits
	c := redistest.StartCluster(t, 3, 0)
	// A request for a lock that is on its way is asked again until this has passed.
	o := redisstore.Options{NodeTimeout: time.Second}
	forHolder, forOther := o, o
	holder, other := openCluster(t, c.Masters, &forHolder), openCluster(t, c.Masters, &forOther)
	calm := openCluster(t, c.Masters, nil) // for what has to be answered, however slow the machine is
	const name = "stock"
	held := request(name)
	g := acquire(t, calm, held)
	from, to := c.Has(t, name), another(t, c, name)
	requests, all := queueUp(t, from, name, other, other)
	renews := func(where string) {
		t.Helper()
		if err := calm.Renew(t.Context(), []store.Lease{held})[0]; err != nil {
			t.Errorf("renewal with the lock %s: %v", where, err)
		}
	}
	m := c.BeginMove(t, name, to)
	renews("still where it was")
	m.Carry(t, name)
	// Each member has half of the lock. If the node timeout passes while an answer is under
	// way, the error does not say why.
	eventually.True(t, "a renewal with half of the lock there says that the slot is moving", func() bool {
		err := holder.Renew(t.Context(), []store.Lease{held})[0]
		if err == nil || errors.Is(err, store.ErrNotHeld) {
			t.Fatalf("renewal with half of the lock there: %v, want an error that says nothing of the lease", err)
		}
		return strings.Contains(err.Error(), "lock's slot is moving")
	})
	m.Carry(t, "{"+name+"}:token")
	renews("there already")
	late, troubled := patientWaiter(name), make(chan error, 1)
	arrives := make(chan outcome, 1)
	go func() {
		g, err := other.Wait(t.Context(), store.WaitRequest{Lease: late}, func(why error) {
			select {
			case troubled <- why:
			default:
			}
		})
		arrives <- outcome{g, err}
	}()
	select {
	case why := <-troubled:
		if !errors.Is(why, store.ErrQuorum) {
			t.Errorf("a waiter that comes meanwhile reports %v, want %v", why, store.ErrQuorum)
		}
	case o := <-arrives:
		t.Fatalf("the wait of a waiter that comes meanwhile ended: %+v", o)
	}
	// An acquire whose answer is still under way when the node timeout passes is
	// ambiguous, since the server may have executed it. Any other says that it was not.
	eventually.True(t, "an acquire of the moving lock has failed for certain", func() bool {
		_, err := holder.Acquire(t.Context(), store.AcquireRequest{Lease: request(name)})
		if !errors.Is(err, store.ErrQuorum) {
			t.Fatalf("acquire of the moving lock: %v, want %v", err, store.ErrQuorum)
		}
		return !errors.Is(err, store.ErrAmbiguous)
	})
	released := make(chan error, 1)
	go func() { released <- holder.Release(t.Context(), store.ReleaseRequest{Lease: held}) }()
	m.End(t)
	if err := <-released; errors.Is(err, store.ErrAmbiguous) { // the slot arrived after the node timeout
		asks(t, "the lock is released", func() error {
			err := holder.Release(t.Context(), store.ReleaseRequest{Lease: held})
			if errors.Is(err, store.ErrNotHeld) { // the first release was executed meanwhile
				return nil
			}
			return err
		})
	} else if err != nil {
		t.Errorf("release while the slot was moving: %v", err)
	}
	inTurn(t, g, append(requests, late), append(all, arrives), calm, calm, calm)
}

// A slot moves away and back before the client of a waiter notices. The waiter, to which the lock
// was handed over meanwhile, learns of that all the same.
func TestSlotMovesAwayAndBack(t *testing.T) {
	t.Parallel() // it mostly waits
	c := redistest.StartCluster(t, 3, 0)
	holder := openCluster(t, c.Masters, nil)
	agree := func(name string) {
		eventually.True(t, "all members know which of them has the slot", func() bool { return c.Has(t, name) != nil })
	}
	for _, name := range []string{"a", "b", "c"} { // a client that refreshes its map just then notices
		other := openCluster(t, c.Masters, nil)
		held := request(name)
		g := acquire(t, holder, held)
		from := c.Has(t, name)
		requests, all := queueUp(t, from, name, other)
		c.Move(t, name, another(t, c, name))
		mustRelease(t, holder, held, store.Grant{})
		agree(name)
		c.Move(t, name, from)
		inTurn(t, g, requests, all, other)
		agree(name)
	}
	nothingLeft(t, c.Masters)
}

// The slot of a member's push channel moves. The member then has another channel, and
// waiters ask for what they missed.
func TestSlotOfTheChannelMoves(t *testing.T) {
	t.Parallel() // it mostly waits
	c := redistest.StartCluster(t, 3, 0)
	holder, other := openCluster(t, c.Masters, nil), openCluster(t, c.Masters, nil)
	const name = "stock"
	held := request(name)
	g := acquire(t, holder, held)
	server, to := c.Has(t, name), another(t, c, name)
	requests, all := queueUp(t, server, name, other)
	before := strings.Fields(server.Text(t, "PUBSUB", "SHARDCHANNELS"))
	for _, channel := range before {
		c.Move(t, channel, to)
	}
	eventually.True(t, "the member has another channel", func() bool {
		now := strings.Fields(server.Text(t, "PUBSUB", "SHARDCHANNELS"))
		return len(now) > 0 && !slices.ContainsFunc(now, func(s string) bool { return slices.Contains(before, s) })
	})
	eventually.True(t, "the place names the new channel", func() bool {
		place := server.Text(t, "GET", "{"+name+"}:place:"+requests[0].Owner)
		return place != "(nil)" && !slices.ContainsFunc(before, func(s string) bool { return strings.Contains(place, s) })
	})
	mustRelease(t, holder, held, store.Grant{})
	inTurn(t, g, requests, all, other)
}

// A waiter is notified by the one member that has the lock, over one subscription
// for all locks; other members receive nothing.
func TestClusterPushesOnOneChannel(t *testing.T) {
	t.Parallel() // it mostly waits
	c := redistest.StartCluster(t, 3, 0)
	holder, other := openCluster(t, c.Masters, nil), openCluster(t, c.Masters, nil)
	type pair struct {
		held store.Lease
		g    store.Grant
		next []store.Lease
		all  []<-chan outcome
	}
	var pairs []pair
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		p := pair{held: request(name)}
		p.g = acquire(t, holder, p.held)
		p.next, p.all = queueUp(t, c.Has(t, name), name, other)
		pairs = append(pairs, p)
	}
	for _, server := range c.Masters {
		channels := strings.Fields(server.Text(t, "PUBSUB", "SHARDCHANNELS"))
		if len(channels) != 2 { // those of holder and of other
			t.Errorf("channels of a member: %q, want 2", channels)
		}
		for _, channel := range channels {
			if c.Has(t, channel) != server {
				t.Errorf("channel %s is in a slot of another member", channel)
			}
		}
		if others := server.Text(t, "PUBSUB", "CHANNELS"); others != "leasehold:to:broken" {
			t.Errorf("channels whose messages go to all members: %q, want that of broken leases", others)
		}
	}
	for _, p := range pairs {
		mustRelease(t, holder, p.held, store.Grant{})
		inTurn(t, p.g, p.next, p.all, other)
	}
	for _, server := range c.Masters {
		if stats := server.Text(t, "INFO", "commandstats"); strings.Contains(stats, "cmdstat_publish:") {
			t.Error("something was published to all members")
		}
	}
}

// offset returns how far the server is with replication.
func offset(t *testing.T, server *redistest.Server, which string) string {
	t.Helper()
	_, rest, _ := strings.Cut(server.Text(t, "INFO", "replication"), which+":")
	offset, _, _ := strings.Cut(rest, "\r\n")
	return offset
}

// A master dies, and its replica is promoted. Waiters go on waiting there, and tokens do
// not go back, even if the replica lacks the master's last writes.
func TestMasterOfAClusterDies(t *testing.T) {
	t.Parallel() // it mostly waits
	c := redistest.StartCluster(t, 3, 1, "--cluster-node-timeout", "1000")
	holder, other := openCluster(t, c.Masters, nil), openCluster(t, c.Masters, nil)
	const name = "stock"
	held := request(name)
	g := acquire(t, holder, held)
	server := c.Has(t, name)
	requests, all := queueUp(t, server, name, other, other)
	replica := c.Replicas[slices.Index(c.Masters, server)]
	eventually.True(t, "the replica has all writes", func() bool {
		return offset(t, server, "master_repl_offset") == offset(t, replica, "slave_repl_offset")
	})
	server.Kill()
	eventually.True(t, "the replica has the slot, and the lease is renewed there", func() bool {
		err := holder.Renew(t.Context(), []store.Lease{held})[0]
		if errors.Is(err, store.ErrNotHeld) {
			t.Fatal("the lease counts as lost")
		}
		return err == nil
	})
	mustRelease(t, holder, held, store.Grant{})
	inTurn(t, g, requests, all, other, other)
}

// A master hands over to its replica and becomes a replica itself, without any connection
// being lost.
func TestMasterOfAClusterHandsOver(t *testing.T) {
	t.Parallel() // it mostly waits
	c := redistest.StartCluster(t, 3, 1)
	holder, other := openCluster(t, c.Masters, nil), openCluster(t, c.Masters, nil)
	const name = "stock"
	held := request(name)
	g := acquire(t, holder, held)
	server := c.Has(t, name)
	requests, all := queueUp(t, server, name, other, other)
	c.Replicas[slices.Index(c.Masters, server)].Text(t, "CLUSTER", "FAILOVER")
	eventually.True(t, "the replica has the slot", func() bool {
		has := c.Has(t, name)
		return has != nil && has != server
	})
	if err := holder.Renew(t.Context(), []store.Lease{held})[0]; err != nil {
		t.Fatal(err)
	}
	mustRelease(t, holder, held, store.Grant{})
	inTurn(t, g, requests, all, other, other)
}

// No lease is lost while part of a cluster is down. The error has the reason even if the
// network is slow.
func TestClusterIsDown(t *testing.T) {
	t.Parallel() // it mostly waits
	c := redistest.StartCluster(t, 3, 0, "--cluster-node-timeout", "500")
	network, proxies := tunnel{leads: map[string]string{}}, behind(t, c.Masters)
	for i, m := range c.Masters {
		network.leads[m.Addr()] = proxies[i].Addr()
	}
	s := openCluster(t, c.Masters, &redisstore.Options{NodeTimeout: 6 * time.Second, Dial: network.dial})
	const name = "stock"
	held := request(name)
	g := acquire(t, s, held)
	server := c.Has(t, name)
	requests, all := queueUp(t, server, name, s)
	others := slices.DeleteFunc(slices.Clone(c.Masters), func(m *redistest.Server) bool { return m == server })
	for _, m := range others {
		if err := m.Freeze(); err != nil {
			t.Fatal(err)
		}
	}
	eventually.True(t, "the cluster is down", func() bool { return strings.Contains(server.Text(t, "CLUSTER", "INFO"), "cluster_state:fail") })
	for _, p := range proxies {
		p.Delay(300 * time.Millisecond)
	}
	err := s.Renew(t.Context(), []store.Lease{held})[0]
	if err == nil || errors.Is(err, store.ErrNotHeld) || !strings.Contains(err.Error(), "CLUSTERDOWN") {
		t.Errorf("renewal: %v, want CLUSTERDOWN", err)
	}
	for _, p := range proxies {
		p.Pass()
	}
	for _, m := range others {
		if err := m.Thaw(); err != nil {
			t.Fatal(err)
		}
	}
	eventually.True(t, "the lease is renewed again", func() bool { return s.Renew(t.Context(), []store.Lease{held})[0] == nil })
	mustRelease(t, s, held, store.Grant{})
	inTurn(t, g, requests, all, s)
	if time.Until(time.UnixMicro(int64(g.Token))) > time.Minute {
		t.Error("the token is more than a minute ahead of the clock")
	}
}

// A release is executed later if no member serves the slot when it is sent.
func TestReleaseInAnUnservedSlot(t *testing.T) {
	t.Parallel() // it mostly waits
	c := redistest.StartCluster(t, 3, 0)
	const name = "stock"
	held := request(name)
	acquire(t, openCluster(t, c.Masters, nil), held)
	server, slot := c.Has(t, name), c.Slot(t, name)
	server.Text(t, "CLUSTER", "DELSLOTS", slot)
	for _, m := range c.Masters {
		if m != server {
			m.Text(t, "CLUSTER", "DELSLOTS", slot)
		}
	}
	s := openCluster(t, c.Masters, nil)
	err := s.Renew(t.Context(), []store.Lease{held})[0]
	if err == nil || !strings.Contains(err.Error(), "no server of the cluster serves the slot") {
		t.Fatalf("renewal: %v, want that no server serves the slot", err)
	}
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: held}); err == nil {
		t.Error("release returned nil although no server has executed it")
	}
	server.Text(t, "CLUSTER", "ADDSLOTS", slot)
	eventually.True(t, "the lock is released", func() bool {
		server.Do(t.Context(), "PERSIST", name)             // so that it does not expire
		keys, err := server.Do(t.Context(), "EXISTS", name) // CLUSTERDOWN at first
		return err == nil && keys == int64(0)
	})
}
