package redisstore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/internal/testenv/sameseed"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
	"github.com/leasehold-dev/leasehold/store/storetest"
)

func TestMain(m *testing.M) {
	sameseed.Set("100")
	goleak.VerifyTestMain(m)
}

// patient returns the options with which the servers of a loaded machine answer in time,
// also while they connect.
func patient() *redisstore.Options {
	return &redisstore.Options{NodeTimeout: long, ConnectTimeout: long}
}

// open opens a store on the addresses and closes it at the end of the test. If o is nil, the
// timeouts are long enough for servers of a loaded machine.
func open(t *testing.T, addrs []string, o *redisstore.Options) *store.Store {
	t.Helper()
	if o == nil {
		o = patient()
	}
	s, err := redisstore.Open(t.Context(), "redis://"+strings.Join(addrs, ","), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// addrs returns the addresses of servers or proxies.
func addrs[S interface{ Addr() string }](servers []S) []string {
	var a []string
	for _, s := range servers {
		a = append(a, s.Addr())
	}
	return a
}

// behind puts a proxy before each server.
func behind(t *testing.T, servers []*redistest.Server) []*faultproxy.Proxy {
	var p []*faultproxy.Proxy
	for _, s := range servers {
		p = append(p, faultproxy.New(t, s.Addr()))
	}
	return p
}

func request(name string) store.Lease {
	return store.Lease{Name: name, Owner: store.NewOwner(), Meta: store.Holder{Host: "h", PID: 1}.Encode(), TTL: 30 * time.Second}
}

func acquire(t *testing.T, s *store.Store, r store.Lease) store.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// noLock returns a function that reports whether no server has the key of the lock: whether
// it was released, since the key does not expire any more.
func noLock(t *testing.T, servers []*redistest.Server, name string) func() bool {
	return func() bool {
		for _, s := range servers {
			if s.PID() != 0 && !s.Deleted(t, name) {
				return false
			}
		}
		return true
	}
}

// hasLock reports whether the server has the lease. If so, it makes the lease
// last for ever: a wait for its end then shows a release.
func hasLock(t *testing.T, server *redistest.Server, r store.Lease) bool {
	return !server.Deleted(t, r.Name) && strings.HasPrefix(server.Text(t, "GET", r.Name), r.Owner)
}

// The store keeps the contract of package store on real servers. By default the node timeout
// would be 20 ms for a TTL of 150 ms, which is too little on a loaded machine.
func TestConformanceOnServers(t *testing.T) {
	t.Parallel() // it mostly waits
	servers := redistest.StartN(t, 3)
	another := func(t *testing.T) *store.Store {
		return open(t, addrs(servers), patient())
	}
	storetest.Run(t, another, storetest.Options{Second: another, AnyAfterExpiry: true})
}

// The key of a lock is its name, with the value "owner {...}" and a TTL. All other keys begin
// with {name}: . Other clients depend on this.
func TestWireFormat(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, []string{server.Addr()}, nil)
	r := request("jobs/nightly")
	g := acquire(t, s, r)
	if got, want := server.Text(t, "GET", "jobs/nightly"), r.Owner+` {"host":"h","pid":1}`; got != want {
		t.Errorf("value %q, want %q", got, want)
	}
	if got := server.Text(t, "GET", "{jobs/nightly}:token"); got != g.Token.String() {
		t.Errorf("counter %s, want the token %v", got, g.Token)
	}
	for _, key := range []string{"jobs/nightly", "{jobs/nightly}:token"} {
		if ttl := server.Text(t, "PTTL", key); strings.HasPrefix(ttl, "-") {
			t.Errorf("key %s has no TTL (%s): it would stay for ever", key, ttl)
		}
	}
	if keys := server.Keys(t); len(keys) != 2 {
		t.Errorf("keys %q, want the lock and its counter", keys)
	}
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r}); err != nil {
		t.Fatal(err)
	}
	if keys := server.Keys(t); len(keys) != 1 {
		t.Errorf("keys after release %q, want the counter alone", keys)
	}
}

// A lock that another client takes with SET NX PX excludes the store, and the reverse. Neither
// deletes the lock of the other.
func TestInteroperatesWithPlainClients(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, []string{server.Addr()}, nil)
	const compareAndDelete = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`

	server.Text(t, "SET", "a", "stranger-value", "NX", "PX", "60000")
	ours := request("a")
	_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: ours})
	busy, ok := err.(*store.BusyError)
	if !ok || busy.Holder.Owner != "stranger-value" || busy.ExpiresIn <= 0 {
		t.Fatalf("acquire a lock of a plain client: %v, want a *BusyError with its value and TTL", err)
	}
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: ours}); err == nil || server.Text(t, "GET", "a") != "stranger-value" {
		t.Fatalf("release by the store changed the lock of a plain client (%v)", err)
	}
	if got := server.Text(t, "EVAL", compareAndDelete, "1", "a", "stranger-value"); got != "1" {
		t.Fatalf("the plain client cannot release its lock: the reply is %s, want 1", got)
	}
	acquire(t, s, ours)
	if got := server.Text(t, "SET", "a", "stranger-value", "NX", "PX", "60000"); got != "(nil)" {
		t.Fatalf("a plain client took a lock that the store holds: the reply is %s", got)
	}
	if got := server.Text(t, "EVAL", compareAndDelete, "1", "a", "stranger-value"); got != "0" {
		t.Fatalf("a plain client released a lock that the store holds: the reply is %s, want 0", got)
	}
	// A key of another client without a TTL is reported as one.
	server.Text(t, "SET", "b", "for ever")
	_, err = s.Acquire(t.Context(), store.AcquireRequest{Lease: request("b")})
	if busy, ok := err.(*store.BusyError); !ok || busy.ExpiresIn >= 0 || !strings.Contains(err.Error(), "without an expiry") {
		t.Errorf("acquire while the key has no TTL: %v, want a *BusyError without an expiry", err)
	}
}

// A step of the client's wall clock changes nothing: tokens stay near the server's clock and
// rise, and leases keep their TTL.
func TestWallClockStepChangesNothing(t *testing.T) {
	servers := redistest.StartN(t, 3)
	s := open(t, addrs(servers), nil)
	last := uint64(0)
	for _, step := range []time.Duration{0, time.Hour, -time.Hour, 10 * 365 * 24 * time.Hour, 0} {
		redisstore.StepWall(s, step)
		r := request("a")
		g := acquire(t, s, r)
		if uint64(g.Token) <= last {
			t.Errorf("token %v after %v, want a larger one, with the clock stepped by %v", g.Token, last, step)
		}
		last = uint64(g.Token)
		if ahead := time.Until(time.UnixMicro(int64(g.Token))); ahead > 5*time.Second {
			t.Errorf("the token is %v ahead of the clock, want at most 5s, with the clock stepped by %v", ahead, step)
		}
		if err := s.Renew(t.Context(), []store.Lease{r})[0]; err != nil {
			t.Error(err)
		}
		st, err := s.Inspect(t.Context(), "a")
		if err != nil || !st.Held || st.ExpiresIn > r.TTL || st.ExpiresIn < r.TTL/2 {
			t.Errorf("inspect with the clock stepped by %v: %+v, %v, want it held for about its TTL", step, st, err)
		}
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r}); err != nil {
			t.Error(err)
		}
	}
}

// Tokens rise even when the counters are lost: the servers' clocks are the floor.
func TestTokensSurviveLostCounters(t *testing.T) {
	servers := redistest.StartN(t, 3)
	s := open(t, addrs(servers), nil)
	last := uint64(0)
	for range 5 {
		r := request("a")
		g := acquire(t, s, r)
		if uint64(g.Token) <= last {
			t.Fatalf("token %v after %v, want a larger one", g.Token, last)
		}
		last = uint64(g.Token)
		// The data is lost after the clock has passed the token, as the clock is the floor.
		eventually.True(t, "the servers' clocks are past the token", func() bool {
			return time.Now().UnixMicro() > int64(last)
		})
		for _, server := range servers {
			server.Text(t, "FLUSHALL")
			server.Declare()
		}
	}
}

// The usual case is one round trip: all nodes take the proposed token, and none
// has to be asked to confirm it.
func TestUncontendedAcquireNeedsNoConfirmation(t *testing.T) {
	servers := redistest.StartN(t, 5)
	s := open(t, addrs(servers), nil)
	const rounds = 50
	for range rounds {
		r := request("a")
		acquire(t, s, r)
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r}); err != nil {
			t.Fatal(err)
		}
	}
	calls := 0
	for _, server := range servers {
		for l := range strings.Lines(server.Text(t, "INFO", "commandstats")) {
			var n int
			if _, rest, ok := strings.Cut(strings.TrimSpace(l), "cmdstat_evalsha:calls="); ok {
				for _, c := range rest {
					if c < '0' || c > '9' {
						break
					}
					n = n*10 + int(c-'0')
				}
				calls += n
			}
		}
	}
	// An acquire and a release a round and node, and little else: a clock that
	// is off, or a slow machine, may need a few confirmations.
	if most := rounds * 5 * 2 * 12 / 10; calls > most {
		t.Errorf("%d script calls for %d rounds on 5 nodes, want at most %d", calls, rounds, most)
	}
}

// Close waits until an attempt that was refused has been cleaned up.
func TestCloseWaitsForCleanUp(t *testing.T) {
	servers := redistest.StartN(t, 3)
	first := open(t, addrs(servers), nil)
	held := request("a")
	acquire(t, first, held)
	// A store that is closed right after a refusal leaves no key, even on a node
	// whose answer it did not wait for.
	for range 20 {
		s := open(t, addrs(servers), nil)
		r := request("a")
		s.Acquire(t.Context(), store.AcquireRequest{Lease: r})
		s.Close()
		for _, server := range servers {
			eventually.True(t, "no key is left of an attempt that was refused", func() bool {
				return !hasLock(t, server, r)
			})
		}
	}
	if _, err := first.Acquire(context.Background(), store.AcquireRequest{Lease: held}); err != nil {
		t.Errorf("a second acquire by the holder: %v", err)
	}
}
