package redisstore_test

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/nodemark"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
)

// address is an address at which one server can replace another.
type address struct {
	listener net.Listener
	mu       sync.Mutex
	leads    string
	conns    []net.Conn
}

func newAddress(t *testing.T, to *redistest.Server) *address {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a := &address{listener: l, leads: to.Addr()}
	t.Cleanup(func() {
		l.Close()
		a.moveTo(to)
	})
	go a.serve()
	return a
}

func (a *address) Addr() string { return a.listener.Addr().String() }

func (a *address) serve() {
	for {
		in, err := a.listener.Accept()
		if err != nil {
			return
		}
		a.mu.Lock()
		out, err := net.Dial("tcp", a.leads)
		if err != nil {
			in.Close()
			a.mu.Unlock()
			continue
		}
		a.conns = append(a.conns, in, out)
		a.mu.Unlock()
		go forward(out, in)
		go forward(in, out)
	}
}

func forward(to, from net.Conn) {
	defer to.Close()
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

// moveTo makes another server answer at the address, and breaks all connections.
func (a *address) moveTo(s *redistest.Server) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.leads = s.Addr()
	for _, c := range a.conns {
		c.Close()
	}
	a.conns = nil
}

// brief is a longest TTL after which a server that has run for some seconds has run for
// longer than any lease.
const brief = "?max_ttl=2s&node_timeout=1s"

func briefly(name string) store.Lease {
	r := request(name)
	r.TTL = 2 * time.Second
	return r
}

// refusedThere makes a client ask for a lock that another holds. It must not get the lock, and
// must find the i-th node in quarantine.
func refusedThere(t *testing.T, c *store.Store, r store.Lease, i int, word string) {
	t.Helper()
	if g, err := c.Acquire(t.Context(), store.AcquireRequest{Lease: r}); err == nil {
		t.Errorf("a second client gets the lock, with token %d", g.Token)
		return
	}
	eventually.True(t, "the node is in quarantine: "+word, func() bool {
		if st, err := c.Inspect(t.Context(), r.Name); err != nil { // it may have to connect again
			t.Log(st, err)
		}
		n := redisstore.StatsOf(c).Nodes[i]
		return n.QuarantinedFor > 0 && strings.Contains(n.Why.Error(), word)
	})
}

// succession has three servers, the second of which is about to be replaced. A client has a lock
// on the first and the second. The third has never had it.
type succession struct {
	servers   []*redistest.Server
	at        *address
	url       string
	connected *store.Store // a connected client that was granted the lock
	late      *store.Store // a connected client that was granted nothing
}

func newSuccession(t *testing.T, settings string, args ...string) *succession {
	s := &succession{servers: redistest.StartN(t, 3, args...)}
	s.at = newAddress(t, s.servers[1])
	s.url = "redis://" + s.servers[0].Addr() + "," + s.at.Addr() + "," + s.servers[2].Addr() + settings
	s.connected, s.late = openURL(t, s.url), openURL(t, s.url)
	for _, c := range []*store.Store{s.connected, s.late} { // to all three
		uses(t, c)
		if _, err := c.Inspect(t.Context(), "lock"); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// holds makes the connected client acquire the lock on the first two servers.
func (s *succession) holds(t *testing.T, r store.Lease) {
	t.Helper()
	acquire(t, s.connected, r)
	s.servers[2].Text(t, "DEL", r.Name, "{"+r.Name+"}:token")
	eventually.True(t, "the first two servers have the lock, and the client has their replies", func() bool {
		st, err := s.connected.Inspect(t.Context(), r.Name) // which is answered after the grant
		return err == nil && st.Nodes[0].Outcome == store.Taken && st.Nodes[1].Outcome == store.Taken
	})
}

// copyOf returns a server that has run for some time, with the mark of another, as from a copy.
func copyOf(t *testing.T, of *redistest.Server, args ...string) *redistest.Server {
	t.Helper()
	standby := redistest.Start(t, args...)
	standby.Text(t, "SET", redistest.Mark, of.Text(t, "GET", redistest.Mark))
	eventually.True(t, "the standby has run for longer than a lease lasts", func() bool {
		for l := range strings.Lines(standby.Text(t, "INFO", "server")) {
			if up, ok := strings.CutPrefix(l, "uptime_in_seconds:"); ok {
				n, _ := strconv.Atoi(strings.TrimSpace(up))
				return n > 7
			}
		}
		return false
	})
	return standby
}

// A standby that was made from a copy of a server replaces it. It lacks the locks that were granted
// since, and is in quarantine although it has run for long.
func TestCopyTakesAServersPlace(t *testing.T) {
	t.Parallel()
	s := newSuccession(t, brief)
	standby := copyOf(t, s.servers[1])
	r := briefly("lock")
	s.holds(t, r)
	s.at.moveTo(standby)
	refusedThere(t, openURL(t, s.url), briefly("lock"), 1, "restarted")
}

// A standby that syncs every write is in quarantine too. Its mark says that nothing is lost, but it
// lacks the lock that a client was granted.
func TestDurableCopyIsBehind(t *testing.T) {
	always := []string{"--appendonly", "yes", "--appendfsync", "always"}
	s := newSuccession(t, "", always...)
	standby := redistest.Start(t, always...)
	standby.Text(t, "SET", redistest.Mark, s.servers[1].Text(t, "GET", redistest.Mark))
	s.holds(t, request("lock"))
	s.at.moveTo(standby)
	refusedThere(t, s.connected, request("lock"), 1, "restarted")
	refusedThere(t, openURL(t, s.url), request("lock"), 1, "restarted")
}

// A durable copy is also in quarantine if it lacks a lock that a waiter was handed.
func TestDurableCopyLacksALockThatWasHanded(t *testing.T) {
	always := []string{"--appendonly", "yes", "--appendfsync", "always"}
	s := newSuccession(t, "", always...)
	standby := redistest.Start(t, always...)
	first := request("lock")
	takes(t, s.late, s.servers, first)
	standby.Text(t, "SET", redistest.Mark, s.servers[1].Text(t, "GET", redistest.Mark))
	r := patientWaiter("lock")
	done := wait(t, t.Context(), s.connected, s.servers, r)
	mustRelease(t, s.late, first, store.Grant{})
	grantedSoon(t, done)
	eventually.True(t, "the second server has handed the lock on, and its push has arrived", func() bool {
		st, err := s.connected.Inspect(t.Context(), "lock") // which is answered after the push
		return err == nil && st.Nodes[1].Outcome == store.Taken && st.Nodes[1].Holder.Owner == r.Owner
	})
	s.servers[2].Text(t, "DEL", "lock", "{lock}:token")
	s.at.moveTo(standby)
	refusedThere(t, s.connected, request("lock"), 1, "restarted")
}

// A durable copy is in quarantine also if the client had to connect to the server again before.
func TestDurableCopyIsBehindAfterABlip(t *testing.T) {
	always := []string{"--appendonly", "yes", "--appendfsync", "always"}
	s := newSuccession(t, "", always...)
	standby := redistest.Start(t, always...)
	standby.Text(t, "SET", redistest.Mark, s.servers[1].Text(t, "GET", redistest.Mark))
	s.holds(t, request("lock"))
	s.at.moveTo(s.servers[1])
	eventually.True(t, "the client is connected again", func() bool {
		st, err := s.connected.Inspect(t.Context(), "lock")
		return err == nil && st.Nodes[1].Outcome == store.Taken
	})
	s.at.moveTo(standby)
	refusedThere(t, s.connected, request("lock"), 1, "restarted")
}

// atOnce has settings of a master that sends its data to a replica without waiting for others.
var atOnce = []string{"--repl-diskless-sync-delay", "0"}

// A standby that replicates a server takes over its address, and the server takes it back. Its mark is
// its own, and open, but it lacks what was granted meanwhile.
func TestServerTakesItsPlaceBackFromItsReplica(t *testing.T) {
	s := newSuccession(t, "", atOnce...)
	server, replica := s.servers[1], redistest.Start(t, atOnce...)
	host, port, _ := net.SplitHostPort(server.Addr())
	replica.Text(t, "REPLICAOF", host, port)
	eventually.True(t, "the replica follows its master", func() bool {
		return strings.Contains(replica.Text(t, "INFO", "replication"), "master_link_status:up")
	})
	replica.Text(t, "REPLICAOF", "NO", "ONE")
	s.at.moveTo(replica)
	acquire(t, s.connected, request("lock"))
	for _, c := range []*store.Store{s.connected, s.late} {
		eventually.True(t, "the client has found the replica", func() bool {
			uses(t, c)
			return redisstore.StatsOf(c).Nodes[1].QuarantinedFor > 0
		})
	}
	s.at.moveTo(server)
	for _, one := range s.servers[1:] { // as if the lock had been granted after the quarantine of the replica
		one.Text(t, "DEL", "lock", "{lock}:token")
	}
	refusedThere(t, s.late, request("lock"), 1, "another server was at its address")
	refusedThere(t, s.connected, request("lock"), 1, "another server was at its address")
	refusedThere(t, openURL(t, s.url), request("lock"), 1, "another server was at its address")
}

// A server becomes a replica of another, which has a mark of its own, and then a master again. No
// connection breaks, but all its data is that of the other.
func TestReplicaOfAndBack(t *testing.T) {
	s := newSuccession(t, "", atOnce...)
	other := redistest.StartN(t, 2, atOnce...)[1]
	s.holds(t, request("lock"))
	server := s.servers[1]
	host, port, _ := net.SplitHostPort(other.Addr())
	server.Text(t, "REPLICAOF", host, port)
	eventually.True(t, "the replica follows its master", func() bool {
		return strings.Contains(server.Text(t, "INFO", "replication"), "master_link_status:up")
	})
	server.Text(t, "REPLICAOF", "NO", "ONE")
	refusedThere(t, s.late, request("lock"), 1, "another server")
	refusedThere(t, openURL(t, s.url), request("lock"), 1, "another server")
}

// A server becomes a replica of its own replica, which is behind, and then a master again. The mark
// names the server itself.
func TestReplicaOfItsOwnReplicaAndBack(t *testing.T) {
	s := newSuccession(t, "", atOnce...)
	server, replica := s.servers[1], redistest.Start(t, atOnce...)
	follow := func(server, master *redistest.Server) {
		t.Helper()
		host, port, _ := net.SplitHostPort(master.Addr())
		server.Text(t, "REPLICAOF", host, port)
		eventually.True(t, "the replica follows its master", func() bool {
			return strings.Contains(server.Text(t, "INFO", "replication"), "master_link_status:up")
		})
		server.Text(t, "REPLICAOF", "NO", "ONE")
	}
	follow(replica, server)
	s.holds(t, request("lock"))
	follow(server, replica)
	refusedThere(t, s.late, request("lock"), 1, "another server")
	refusedThere(t, openURL(t, s.url), request("lock"), 1, "another server")
}

// A server that did not sync every write before its restart is in quarantine, although its
// configuration after the restart says that it does.
func TestFsyncChangedBeforeTheRestart(t *testing.T) {
	for name, setting := range map[string][]string{
		"every second":              {"appendfsync", "everysec"},
		"not while it is rewritten": {"no-appendfsync-on-rewrite", "yes"},
	} {
		t.Run(name, func(t *testing.T) {
			servers := redistest.StartN(t, 3, "--appendonly", "yes", "--appendfsync", "always")
			for _, s := range servers {
				s.Text(t, "CONFIG", "SET", setting[0], setting[1])
			}
			acquire(t, open(t, addrs(servers), nil), request("a"))
			restart(t, servers...) // after which it syncs always, as on the command line
			if n := quarantined(t, open(t, addrs(servers), nil), "b", "restarted"); n < 2 {
				t.Errorf("%d servers are in quarantine, want at least 2", n)
			}
		})
	}
}

// A client without the right to read the configuration does not record durability in the mark, and
// removes what others have recorded.
func TestDurabilityIsRecordedOnlyIfSeen(t *testing.T) {
	servers := redistest.StartN(t, 3, "--appendonly", "yes", "--appendfsync", "always")
	durable := func() bool {
		m, err := nodemark.Parse(servers[0].Text(t, "GET", redistest.Mark))
		if err != nil {
			t.Fatal(err)
		}
		return m.Durable > 0
	}
	acquire(t, open(t, addrs(servers), nil), request("a"))
	if !durable() {
		t.Error("a client that reads the setting does not record durability")
	}
	for _, s := range servers {
		s.Text(t, "ACL", "SETUSER", "locker", "on", ">x", "~*", "&*", "+@all", "-config")
	}
	acquire(t, openURL(t, "redis://locker:x@"+strings.Join(addrs(servers), ",")+"?fsync=always"), request("b"))
	if !durable() {
		t.Error("a client with fsync=always removes the durability that others have recorded")
	}
	acquire(t, openURL(t, "redis://locker:x@"+strings.Join(addrs(servers), ",")), request("c"))
	if durable() {
		t.Error("a client that cannot read the setting keeps the durability that others have recorded")
	}
	acquire(t, openURL(t, "redis://locker:x@"+strings.Join(addrs(servers), ",")+"?fsync=always"), request("d"))
	if durable() {
		t.Error("a client that cannot read the setting records durability")
	}
}

// A quarantine lasts until the clocks of the server and of the client have passed its end.
// Here the client's clock steps.
func TestQuarantineByTwoClocks(t *testing.T) {
	servers := redistest.StartN(t, 3)
	begin := open(t, addrs(servers), nil)
	restart(t, servers[:2]...)
	eventually.True(t, "two nodes are in quarantine", func() bool { return quarantined(t, begin, "a", "") == 2 })
	// A step of the server's clock is simulated by an earlier end in the mark.
	passed := func(change func(*nodemark.Mark)) {
		for _, s := range servers[:2] {
			m, err := nodemark.Parse(s.Text(t, "GET", redistest.Mark))
			if err != nil {
				t.Fatal(err)
			}
			change(&m)
			s.Text(t, "SET", redistest.Mark, m.String())
		}
	}
	passed(func(m *nodemark.Mark) { m.Opens -= 3600e6 })
	if n := quarantined(t, open(t, addrs(servers), nil), "a", ""); n < 2 {
		t.Errorf("after a step of the servers' clocks %d servers are in quarantine, want at least 2", n)
	}
	passed(func(m *nodemark.Mark) { m.Opens += 3600e6; m.ClientOpens -= 3600e6 })
	if n := quarantined(t, open(t, addrs(servers), nil), "a", ""); n < 2 {
		t.Errorf("after a step of the client's clock %d servers are in quarantine, want at least 2", n)
	}
	passed(func(m *nodemark.Mark) { m.Opens -= 3600e6 })
	acquire(t, open(t, addrs(servers), nil), request("b"))
	// A client that stays connected counts the quarantine itself, whatever the mark says.
	if n := quarantined(t, begin, "a", ""); n < 2 {
		t.Errorf("a client that counts the quarantine itself finds %d servers in it, want at least 2", n)
	}
}

// A mark of another version is neither taken for that of an emptied server nor overwritten, except by
// bootstrap.
func TestMarkOfAnotherVersion(t *testing.T) {
	t.Parallel() // it mostly waits
	for _, mark := range []string{"2 open what will be", "a text of somebody else"} {
		t.Run(mark[:1], func(t *testing.T) {
			servers := redistest.StartN(t, 3)
			before := open(t, addrs(servers), nil)
			only := openURL(t, "redis://"+servers[0].Addr())
			held := request("held")
			acquire(t, before, held)
			for _, s := range servers {
				s.Text(t, "SET", redistest.Mark, mark)
			}
			refused := func(client string, err error) {
				t.Helper()
				var q *store.QuorumError
				if !errors.As(err, &q) || q.Count(store.Refused) == 0 || !strings.Contains(err.Error(), "version") || !strings.Contains(err.Error(), "bootstrap") {
					t.Errorf("%s: %v, want a refusal that names the version and bootstrap", client, err)
				}
			}
			_, err := before.Acquire(t.Context(), store.AcquireRequest{Lease: request("a")})
			refused("an earlier client", err)
			refused("a holder", before.Renew(t.Context(), []store.Lease{held})[0])
			late := open(t, addrs(servers), nil)
			_, err = late.Acquire(t.Context(), store.AcquireRequest{Lease: request("a")})
			refused("a later client", err)
			_, err = openURL(t, "redis://"+servers[0].Addr()).Acquire(t.Context(), store.AcquireRequest{Lease: request("a")})
			refused("a client of one server", err)
			if st, err := late.Inspect(t.Context(), "held"); err != nil || !st.Held {
				t.Errorf("inspect: %+v, %v, want a held lock", st, err)
			}
			for _, s := range servers {
				if got := s.Text(t, "GET", redistest.Mark); got != mark {
					t.Errorf("the mark is now %q, want %q", got, mark)
				}
			}
			if err := before.Release(t.Context(), store.ReleaseRequest{Lease: held}); err != nil {
				t.Error(err)
			}
			only.Close()
			if _, err := redisadmin.Bootstrap(t.Context(), "redis://"+strings.Join(addrs(servers), ","), nil, false); err != nil {
				t.Fatal(err)
			}
			acquire(t, before, request("a"))
			acquire(t, open(t, addrs(servers), nil), request("b"))
			eventually.True(t, "the refused client checks again", func() bool {
				_, err := late.Acquire(t.Context(), store.AcquireRequest{Lease: request("c")})
				return err == nil
			})
		})
	}
}
