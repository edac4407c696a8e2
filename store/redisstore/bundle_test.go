package redisstore_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/nodemark"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// hold acquires n locks whose names begin with prefix, on all servers.
func hold(t *testing.T, s *store.Store, prefix string, n int) []store.Lease {
	t.Helper()
	leases := make([]store.Lease, n)
	for i := range leases {
		leases[i] = request(prefix + strconv.Itoa(i))
		acquire(t, s, leases[i])
	}
	settled(t, s)
	return leases
}

// lengthen gives leases a longer TTL than they were acquired with.
func lengthen(leases []store.Lease) {
	for i := range leases {
		leases[i].TTL = 50 * time.Second
	}
}

// left returns how long the server keeps the lock.
func left(t *testing.T, server *redistest.Server, name string) time.Duration {
	t.Helper()
	ms, err := strconv.Atoi(server.Text(t, "PTTL", name))
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(ms) * time.Millisecond
}

// calls returns how often a command was run since the statistics were reset.
func calls(t *testing.T, server *redistest.Server, command string) int {
	t.Helper()
	for line := range strings.Lines(server.Text(t, "INFO", "commandstats")) {
		if rest, ok := strings.CutPrefix(line, "cmdstat_"+command+":calls="); ok {
			digits, _, _ := strings.Cut(rest, ",")
			n, err := strconv.Atoi(digits)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	return 0
}

// Many leases are renewed by few commands, whatever their TTLs and their order, and each for
// its own TTL.
func TestManyLeasesTakeFewCommands(t *testing.T) {
	servers := redistest.StartN(t, 3)
	s := open(t, addrs(servers), &redisstore.Options{NodeTimeout: long, ConnectTimeout: long, MaxTTL: time.Hour})
	const n = 600
	leases := hold(t, s, "a", n)
	for i := range leases {
		leases[i].TTL = time.Duration(10+10*(i%3)) * time.Minute
	}
	for _, server := range servers {
		server.Text(t, "CONFIG", "RESETSTAT")
	}
	for i, err := range s.Renew(t.Context(), leases) {
		if err != nil {
			t.Fatalf("lease %d: %v", i, err)
		}
	}
	want := 3 * ((n/3 + redisstore.MaxBundle - 1) / redisstore.MaxBundle)
	for _, server := range servers {
		eventually.True(t, "all renewals have arrived", func() bool { return calls(t, server, "evalsha") >= want })
		if got := calls(t, server, "evalsha"); got != want {
			t.Errorf("%s: %d commands to renew %d leases, want %d", server.Addr(), got, n, want)
		}
		for _, r := range leases {
			if l := left(t, server, r.Name); l > r.TTL || l < r.TTL-5*time.Minute {
				t.Errorf("lock %q is kept for %v after a renewal for %v", r.Name, l, r.TTL)
			}
		}
	}
}

// A lease that cannot be renewed affects no other: each gets the error that it would get
// alone, and the others are renewed.
func TestABadLeaseHarmsNoOther(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d nodes", nodes), func(t *testing.T) {
			servers := redistest.StartN(t, nodes)
			s := open(t, addrs(servers), patient())
			leases := hold(t, s, "a", 2*redisstore.MaxBundle)
			const wrongType, taken, gone, foreign, invalid, first, last = 3, 7, 8, 20, 40, 0, redisstore.MaxBundle - 1
			for _, server := range servers {
				server.Text(t, "DEL", leases[wrongType].Name)
				server.Text(t, "LPUSH", leases[wrongType].Name, "x")
				server.Text(t, "SET", leases[taken].Name, "somebody {}", "PX", "7000")
				server.Text(t, "SET", leases[first].Name, "another")
				server.Text(t, "DEL", leases[gone].Name, leases[last].Name)
				server.Text(t, "SET", leases[foreign].Name, strings.Repeat("\x00 x", 50000))
			}
			for i := range leases {
				leases[i].TTL = 50 * time.Second
			}
			leases[invalid].TTL = -1
			errs := s.Renew(t.Context(), leases)
			for i, err := range errs {
				alone := s.Renew(t.Context(), leases[i:i+1])[0]
				if (err == nil) != (alone == nil) {
					t.Errorf("lease %d: %v; renewed alone: %v", i, err, alone)
				}
				var want error
				says := ""
				switch i {
				case wrongType:
					want, says = store.ErrNotHeld, "not held"
				case taken:
					want, says = store.ErrNotHeld, "now held by somebody"
				case first:
					want, says = store.ErrNotHeld, "now held by another"
				case gone, last, foreign:
					want = store.ErrNotHeld
				case invalid:
					want = store.ErrInvalid
				}
				if !errors.Is(err, want) || err != nil && (!strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), leases[i].Name) && i != invalid) {
					t.Errorf("lease %d: %v, want %v that says %q", i, err, want, says)
				}
				if err == nil && left(t, servers[0], leases[i].Name) < 30*time.Second {
					t.Errorf("lease %d is not renewed", i)
				}
				if err != nil && alone != nil && err.Error() != alone.Error() && i != taken {
					t.Errorf("lease %d: %v; renewed alone: %v", i, err, alone)
				}
			}
			for _, server := range servers {
				if l := left(t, server, leases[taken].Name); l > 7*time.Second {
					t.Errorf("another owner's lease was renewed: it has %v left", l)
				}
				if got := server.Text(t, "EXISTS", leases[gone].Name, leases[last].Name); got != "0" {
					t.Error("a renewal has created a lock")
				}
			}
		})
	}
}

// A lease that one node has lost is restored there by a call that also renews other leases.
func TestALeaseAmongManyIsHealed(t *testing.T) {
	servers := redistest.StartN(t, 3)
	s := open(t, addrs(servers), patient())
	leases := hold(t, s, "a", 10)
	servers[1].Text(t, "DEL", "a4", "a9")
	for i, err := range s.Renew(t.Context(), leases) {
		if err != nil {
			t.Errorf("lease %d: %v", i, err)
		}
	}
	eventually.True(t, "the node has the locks again", func() bool { return servers[1].Text(t, "EXISTS", "a4", "a9") == "2" })
}

// An error of one lease is not that of all: here the user has lost the right to one of the
// names.
func TestOneNameThatIsNotPermitted(t *testing.T) {
	servers := redistest.StartN(t, 3)
	var as []string
	for _, server := range servers {
		server.Text(t, "ACL", "SETUSER", "locker", "on", ">pw", "~*", "&*", "+@all")
		as = append(as, server.Addr())
	}
	s, err := redisstore.Open(t.Context(), "redis://locker:pw@"+strings.Join(as, ","), patient())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	leases := append(hold(t, s, "a", 10), hold(t, s, "b", 1)...)
	leases = append(leases, hold(t, s, "a1", 10)...)
	for _, server := range servers {
		server.Text(t, "ACL", "SETUSER", "locker", "resetkeys", "~a*", "~{a*}:*", "~"+redistest.Mark)
	}
	for i, err := range s.Renew(t.Context(), leases) {
		var q *store.QuorumError
		switch {
		case leases[i].Name == "b0" && (!errors.As(err, &q) || q.Count(store.Refused) < 2 || !strings.Contains(err.Error(), "permission")):
			t.Errorf("the lock that is not permitted: %v, want a refusal by a majority that names the permission", err)
		case leases[i].Name != "b0" && err != nil:
			t.Errorf("lease %d: %v", i, err)
		}
	}
}

// Servers that now belong to other clients refuse every renewal. Leases that are
// gone are reported as gone.
func TestManyLeasesOfAnotherList(t *testing.T) {
	servers := redistest.StartN(t, 3)
	s := open(t, addrs(servers), patient())
	leases := hold(t, s, "a", 20)
	for _, server := range servers {
		mark := nodemark.New()
		mark.Open, mark.Print, mark.List = true, "0123456789ab", "others:1"
		server.Text(t, "SET", redistest.Mark, mark.String())
		server.Text(t, "DEL", "a5")
		server.Text(t, "PEXPIRE", "a6", "20000")
	}
	for i, err := range s.Renew(t.Context(), leases) {
		var q *store.QuorumError
		switch {
		case i == 5 && !errors.Is(err, store.ErrNotHeld):
			t.Errorf("renewal of a lease that is gone: %v, want %v", err, store.ErrNotHeld)
		case i != 5 && (!errors.As(err, &q) || !strings.Contains(err.Error(), "others:1") || errors.Is(err, store.ErrNotHeld)):
			t.Errorf("lease %d: %v, want a *QuorumError that names others:1", i, err)
		}
	}
	if l := left(t, servers[0], "a6"); l > 20*time.Second {
		t.Error("a server of other clients has renewed the lease")
	}
}

// Servers forget the scripts while many leases are renewed.
func TestManyLeasesWhenScriptsAreFlushed(t *testing.T) {
	servers := redistest.StartN(t, 3)
	proxies := behind(t, servers)
	s := open(t, addrs(proxies), patient())
	leases := hold(t, s, "a", 3*redisstore.MaxBundle)
	lengthen(leases)
	proxies[2].HoldRequests()
	done := make(chan []error, 1)
	for _, server := range servers {
		server.Text(t, "SCRIPT", "FLUSH")
	}
	go func() { done <- s.Renew(t.Context(), leases) }()
	for i, err := range <-done {
		if err != nil {
			t.Errorf("lease %d: %v", i, err)
		}
	}
	proxies[2].Release()
	proxies[2].Pass()
	for _, r := range leases {
		eventually.True(t, "the third node has renewed too", func() bool { return left(t, servers[2], r.Name) > 30*time.Second })
	}
}

// If a connection breaks while many leases are renewed over it, the outcome of each is
// unknown, and none counts as lost.
func TestManyLeasesWithoutAnswer(t *testing.T) {
	servers := redistest.StartN(t, 1)
	proxies := behind(t, servers)
	s := open(t, addrs(proxies), patient())
	leases := hold(t, s, "a", 2*redisstore.MaxBundle)
	lengthen(leases)
	proxies[0].HoldReplies()
	done := make(chan []error, 1)
	go func() { done <- s.Renew(t.Context(), leases) }()
	eventually.True(t, "the server has renewed", func() bool { return left(t, servers[0], leases[len(leases)-1].Name) > 30*time.Second })
	proxies[0].Cut()
	proxies[0].Pass()
	for i, err := range <-done {
		if !errors.Is(err, store.ErrAmbiguous) || errors.Is(err, store.ErrNotHeld) {
			t.Errorf("lease %d: %v, want an unknown outcome", i, err)
		}
	}
}

// Long names and descriptions make shorter bundles.
func TestManyLongLeases(t *testing.T) {
	servers := redistest.StartN(t, 3)
	s := open(t, addrs(servers), patient())
	leases := make([]store.Lease, 2*redisstore.MaxBundle)
	for i := range leases {
		leases[i] = request(fmt.Sprintf("%d%s", i, strings.Repeat("\r\n{", store.MaxName/3-2)))
		leases[i].Meta = `"` + strings.Repeat("m", store.MaxMeta-2) + `"`
		acquire(t, s, leases[i])
	}
	settled(t, s)
	servers[0].Text(t, "CONFIG", "RESETSTAT")
	lengthen(leases)
	for i, err := range s.Renew(t.Context(), leases) {
		if err != nil {
			t.Errorf("lease %d: %v", i, err)
		}
	}
	few, many := len(leases)*store.MaxMeta/(32<<10), len(leases)/2
	eventually.True(t, "all renewals have arrived", func() bool { return calls(t, servers[0], "evalsha") >= few })
	if got := calls(t, servers[0], "evalsha"); got > many {
		t.Errorf("%d commands for %d long leases, want at most %d", got, len(leases), many)
	}
}
