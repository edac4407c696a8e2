package redisstore_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/nodemark"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
)

// monitor records what a server executes, and returns a function that ends the recording and
// returns it.
func monitor(t *testing.T, server *redistest.Server) (done func() []string) {
	t.Helper()
	c, err := net.Dial("tcp", server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	in := bufio.NewReader(c)
	fmt.Fprint(c, "MONITOR\r\n")
	if said, err := in.ReadString('\n'); err != nil || said != "+OK\r\n" {
		t.Fatalf("MONITOR: %q, %v", said, err)
	}
	return func() (all []string) {
		t.Helper()
		end := store.NewOwner()
		server.Text(t, "ECHO", end)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(line, end) {
				return all
			}
			all = append(all, line)
		}
	}
}

// uses makes a client want a lock, whether it gets one or not: before, it writes no marks.
func uses(t *testing.T, s *store.Store) {
	t.Helper()
	r := request(store.NewOwner())
	r.TTL = time.Second
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r}); err == nil {
		s.Release(t.Context(), store.ReleaseRequest{Lease: r})
	}
}

// writes returns the commands that change data, of those that a server has executed.
func writes(t *testing.T, server *redistest.Server, executed []string) (all []string) {
	t.Helper()
	for _, line := range executed {
		_, command, ok := strings.Cut(line, `] "`)
		if name, _, _ := strings.Cut(command, `"`); ok {
			if strings.Contains(server.Text(t, "COMMAND", "INFO", name), "write") || strings.EqualFold(name, "publish") {
				all = append(all, line)
			}
		}
	}
	return all
}

// A client that only looks at locks writes nothing, whatever servers it has.
func TestLookingWritesNothing(t *testing.T) {
	servers := redistest.StartN(t, 3)
	for _, s := range servers {
		s.Text(t, "DEL", redistest.Mark)
	}
	a := addrs(servers)
	only := openURL(t, "redis://"+a[0])
	held := request("held")
	acquire(t, only, held)
	servers[2].Kill()
	for _, url := range []string{"redis://" + a[0], "redis://" + a[0] + "," + a[2], "redis://" + a[0] + "," + a[1], "redis://" + strings.Join(a, ","), "redis://" + a[0] + "?next=" + strings.Join(a, ","), "redis://" + strings.Join(a, ",") + "?next=" + a[0] + "," + a[1]} {
		executed := []func() []string{monitor(t, servers[0]), monitor(t, servers[1])}
		if s, err := redisstore.Open(t.Context(), url, nil); err == nil {
			if st, err := s.Inspect(t.Context(), "held"); err == nil && strings.Count(url, ",") == 0 && !st.Held {
				t.Errorf("%s shows no holder", url)
			}
			s.List(t.Context(), "")
			s.Close()
		}
		for i, all := range executed {
			if w := writes(t, servers[i], all()); len(w) > 0 {
				t.Errorf("a look with %s has server %d execute\n%s", url, i, strings.Join(w, ""))
			}
		}
	}
	if err := only.Renew(t.Context(), []store.Lease{held})[0]; err != nil {
		t.Errorf("renewal after the looks: %v", err)
	}
}

// A client with a wrong list does not take a server away from those that use it alone, even if
// the other servers of the list make up a majority. It gets no lock, and the error says why.
func TestServerInUseAloneDoesNotJoin(t *testing.T) {
	servers := redistest.StartN(t, 3)
	for _, s := range servers {
		s.Text(t, "DEL", redistest.Mark)
	}
	a := addrs(servers)
	only := openURL(t, "redis://"+a[0])
	held := request("held")
	acquire(t, only, held)
	const quickly = "?max_ttl=2s&node_timeout=1s"
	tries := func(s *store.Store) error {
		r := request("held")
		r.TTL = time.Second
		_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r})
		if err == nil {
			t.Fatal("two clients hold the lock")
		}
		return err
	}
	several := openURL(t, "redis://"+strings.Join(a, ",")+quickly)
	for range 2 { // the second time it knows
		if err := tries(several); !strings.Contains(err.Error(), "in use alone") || !strings.Contains(err.Error(), "leasehold replace") || !strings.Contains(err.Error(), "leasehold bootstrap") {
			t.Errorf("acquire with a list of three: %v, want an error that says how to repair it", err)
		}
	}
	for _, s := range servers {
		if mark := s.Text(t, "GET", redistest.Mark); mark != "(nil)" {
			t.Errorf("a server was marked: %s", mark)
		}
	}
	if err := only.Renew(t.Context(), []store.Lease{held})[0]; err != nil {
		t.Errorf("renewal by the client that uses the server alone: %v", err)
	}
	acquire(t, only, request("another"))

	// With the other servers dead, there is no majority, and nothing is written either.
	servers[1].Kill()
	servers[2].Kill()
	if s, err := redisstore.Open(t.Context(), "redis://"+a[0]+","+a[1]+quickly, nil); err == nil {
		tries(s)
		s.Close()
	}
	if mark := servers[0].Text(t, "GET", redistest.Mark); mark != "(nil)" {
		t.Errorf("the server was marked: %s", mark)
	}
	if err := only.Renew(t.Context(), []store.Lease{held})[0]; err != nil {
		t.Errorf("renewal by the client that uses the server alone: %v", err)
	}
}

// A server that nobody uses alone any more joins by itself when the last lease must have ended.
// A client that comes back to use it alone is refused.
func TestServerJoinsWhenNobodyUsesItAlone(t *testing.T) {
	t.Parallel() // it mostly waits
	servers := redistest.StartN(t, 3)
	a := addrs(servers)
	only := openURL(t, "redis://"+a[0])
	brief := func(name string) store.Lease {
		r := request(name)
		r.TTL = time.Second
		return r
	}
	r := brief("free")
	acquire(t, only, r)
	several := openURL(t, "redis://"+strings.Join(a, ",")+"?max_ttl=2s&node_timeout=1s")
	eventually.True(t, "the servers have joined", func() bool {
		_, err := several.Acquire(t.Context(), store.AcquireRequest{Lease: brief("free")})
		return err == nil
	})
	if servers[0].Text(t, "EXISTS", redistest.Alone) != "0" {
		t.Error("the server has joined while a client uses it alone")
	}
	eventually.True(t, "the client with one server is refused", func() bool {
		_, err := only.Acquire(t.Context(), store.AcquireRequest{Lease: brief("other")})
		return ofAnotherList(err)
	})
}

// An operator makes one of several of a server that was used alone, as soon as no lock is held.
func TestBootstrapOfServerUsedAlone(t *testing.T) {
	servers := redistest.StartN(t, 3)
	a := addrs(servers)
	only := openURL(t, "redis://"+a[0])
	held := request("held")
	acquire(t, only, held)
	url := "redis://" + strings.Join(a, ",")
	if _, err := redisadmin.Bootstrap(t.Context(), url, nil, false); err == nil || !strings.Contains(err.Error(), "held") {
		t.Errorf("bootstrap while a client that uses one server alone holds a lock: %v, want an error that names it", err)
	}
	if err := only.Release(t.Context(), store.ReleaseRequest{Lease: held}); err != nil {
		t.Fatal(err)
	}
	if _, err := redisadmin.Bootstrap(t.Context(), url, nil, false); err != nil {
		t.Fatal(err)
	}
	acquire(t, openURL(t, url), request("held"))
	eventually.True(t, "the client with one server is refused", func() bool {
		_, err := only.Acquire(t.Context(), store.AcquireRequest{Lease: request("other")})
		return ofAnotherList(err)
	})
}

// A list of which one server belongs to others takes none of the new servers, unless it has a
// majority already.
func TestListBesideAnother(t *testing.T) {
	servers := redistest.StartN(t, 5)
	a := addrs(servers)
	first := openURL(t, "redis://"+strings.Join(a[:3], ","))
	acquire(t, first, request("a"))
	other := openURL(t, "redis://"+strings.Join(a[2:], ","))
	if _, err := other.Acquire(t.Context(), store.AcquireRequest{Lease: request("b")}); err == nil || !strings.Contains(err.Error(), "does not belong to these servers yet") {
		t.Errorf("acquire with a list that has a server of another one: %v, want an error that says that the others do not join", err)
	}
	if slices.ContainsFunc(servers[3:], func(s *redistest.Server) bool { return strings.Contains(s.Text(t, "GET", redistest.Mark), a[3]) }) {
		t.Error("servers have joined a list of which another server belongs to others")
	}
	acquire(t, first, request("c"))
}

// If the databases of two deployments are swapped, their clients are refused: each finds the locks
// and the mark of the other.
func TestSwappedDatabases(t *testing.T) {
	for name, count := range map[string]int{"one server": 1, "three servers": 3} {
		t.Run(name, func(t *testing.T) {
			servers := redistest.StartN(t, count)
			urls := [2]string{"redis://" + strings.Join(addrs(servers), ",") + "/0", "redis://" + strings.Join(addrs(servers), ",") + "/1"}
			for _, url := range urls {
				if _, err := redisadmin.Bootstrap(t.Context(), url, nil, false); err != nil {
					t.Fatal(err)
				}
			}
			safe := func(name string) store.Lease {
				r := request(name)
				r.Require = store.CrashSafe
				return r
			}
			first, second := openURL(t, urls[0]), openURL(t, urls[1])
			acquire(t, first, safe("held"))
			acquire(t, second, safe("other"))
			for _, s := range servers {
				s.Text(t, "SWAPDB", "0", "1")
			}
			for _, s := range []*store.Store{first, openURL(t, urls[0])} {
				if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: safe("held")}); err == nil || !strings.Contains(err.Error(), "/1") {
					t.Errorf("acquire of a held lock after the databases were swapped: %v, want a refusal that names the other database", err)
				}
			}
			for _, s := range servers {
				s.Text(t, "SWAPDB", "0", "1")
			}
			eventually.True(t, "locks are granted again", func() bool {
				_, err := first.Acquire(t.Context(), store.AcquireRequest{Lease: safe("free")})
				return err == nil
			})
		})
	}
}

// A server comes back to an address that another server had meanwhile. It lacks the locks that
// the other one granted. It is quarantined once, and not again for each client.
func TestServerThatTakesItsPlaceBack(t *testing.T) {
	servers := redistest.StartN(t, 4)
	var place atomic.Pointer[redistest.Server]
	place.Store(servers[0])
	virtual := func(ctx context.Context, network, addr string) (net.Conn, error) {
		if addr == "place:6379" {
			addr = place.Load().Addr()
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	url := "redis://place:6379," + servers[2].Addr() + "," + servers[3].Addr()
	opens := func() *store.Store {
		s, err := redisstore.Open(t.Context(), url, &redisstore.Options{ConnectTimeout: 20 * time.Second, Dial: virtual})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	moves := func(from, to *redistest.Server) {
		place.Store(to)
		from.Text(t, "CLIENT", "KILL", "TYPE", "pubsub")
	}
	first, second := opens(), opens()
	uses(t, first)
	uses(t, second)
	marked := func(s *redistest.Server) string { return s.Text(t, "GET", redistest.Mark) }
	for at := range 3 {
		from, to := servers[at%2], servers[(at+1)%2]
		moves(from, to)
		eventually.True(t, "the first client has reached the server", func() bool {
			uses(t, first)
			return strings.Contains(marked(to), "place")
		})
		if at == 0 {
			continue // it is new, and the tests declare it
		}
		eventually.True(t, "the server that is back is in quarantine", func() bool {
			uses(t, first)
			return strings.Contains(marked(to), " shut ") && strings.Contains(marked(to), "returned")
		})
		eventually.True(t, "the second client knows of it", func() bool {
			uses(t, second)
			return redisstore.StatsOf(second).Nodes[0].QuarantinedFor > 0
		})
		// One that used the other server until a moment ago may begin the quarantine anew, and then
		// nobody does.
		eventually.True(t, "no client changes the mark any more", func() bool {
			before := marked(to)
			for _, s := range []*store.Store{opens(), first, second} {
				uses(t, s)
			}
			return marked(to) == before
		})
	}
}

// A TTL is limited only if max_ttl was set. Where a lock needs quarantine, a client with a longer one
// first has a majority of the servers allow for it; other clients learn of it there.
func TestLongTTL(t *testing.T) {
	server := redistest.Start(t)
	long := request("long")
	long.TTL = 10 * time.Minute
	acquire(t, openURL(t, "redis://"+server.Addr()), long)
	if _, err := openURL(t, "redis://"+server.Addr()+"?max_ttl=1m").Acquire(t.Context(), store.AcquireRequest{Lease: long}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("acquire with a TTL over max_ttl: %v, want %v", err, store.ErrInvalid)
	}

	servers := redistest.StartN(t, 3)
	longest := func(s *redistest.Server) time.Duration {
		m, err := nodemark.Parse(s.Text(t, "GET", redistest.Mark))
		if err != nil {
			t.Fatal(err)
		}
		return time.Duration(m.Longest) * time.Microsecond
	}
	other := openURL(t, "redis://"+strings.Join(addrs(servers), ","))
	acquire(t, other, request("a"))
	servers[2].Kill()
	s := openURL(t, "redis://"+strings.Join(addrs(servers), ",")+"?node_timeout=1s")
	acquire(t, s, long)
	for _, server := range servers[:2] {
		if d := longest(server); d < long.TTL {
			t.Errorf("the mark allows for %v, want at least %v", d, long.TTL)
		}
	}
	restart(t, servers[:1]...)
	eventually.True(t, "another client keeps the server in quarantine for as long", func() bool {
		other.Acquire(t.Context(), store.AcquireRequest{Lease: request("b")})
		return redisstore.StatsOf(other).Nodes[0].QuarantinedFor > 9*time.Minute
	})

	servers = redistest.StartN(t, 3)
	s = openURL(t, "redis://"+strings.Join(addrs(servers), ","))
	servers[1].Kill()
	servers[2].Kill()
	long.Owner = store.NewOwner()
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: long}); !errors.Is(err, store.ErrQuorum) {
		t.Errorf("acquire with one server of three: %v, want %v", err, store.ErrQuorum)
	}
}
