package zkstore

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
)

// Clients begin with different servers, so that one server does not have them all.
func TestClientsBeginWithDifferentServers(t *testing.T) {
	servers := []string{"a:1", "b:1", "c:1"}
	first := map[string]bool{}
	for range 300 { // so that each server comes first at least once
		o, err := (&Options{servers: servers}).checked()
		if err != nil {
			t.Fatal(err)
		}
		shuffled := o.shuffled()
		first[shuffled[0]] = true
		if slices.Sort(shuffled); !slices.Equal(shuffled, o.servers) {
			t.Fatalf("the servers are %q, want %q in any order", shuffled, o.servers)
		}
	}
	if len(first) != len(servers) {
		t.Errorf("the first servers are %v, want each of %q", first, servers)
	}
}

// A client asks for limits, and begins its sessions, with the server that comes first in
// its own order.
func TestClientBeginsWithItsFirstServer(t *testing.T) {
	t.Parallel() // it mostly waits
	for want := range 3 {
		var proxies []*faultproxy.Proxy
		var servers []string
		for range 3 {
			p := faultproxy.New(t, shared.Addr)
			proxies, servers = append(proxies, p), append(servers, p.Addr())
		}
		toFront := func(_ int, swap func(i, j int)) { swap(0, want) }
		s := mustOpen(t, &Options{servers: servers, shuffle: toFront})
		l := request(fmt.Sprint("first server ", want), 10*time.Second)
		mustAcquire(t, s, l)
		mustRelease(t, s, l)
		// One connection to ask for the limits and one of a session. If the server is slow,
		// the next one is asked as well.
		if n := proxies[want].Stats().Accepted; n < 2 {
			t.Errorf("the first server, %d, has had %d connections, want at least 2", want, n)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
