package zk

import (
	"context"
	"net"
	"testing"
)

// A server is found behind any address of its name, although the others refuse. If several accept,
// each of them is tried: one may be that of a member that serves nobody.
func TestDialsAllAddresses(t *testing.T) {
	real := lookup
	defer func() { lookup = real }()
	lookup = func(context.Context, string) ([]string, error) { return []string{"::1", "127.0.0.1"}, nil }
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	dialled := func() map[string]bool {
		hosts := make(map[string]bool)
		for range 64 {
			c, err := dial(t.Context(), net.JoinHostPort("members", port))
			if err != nil {
				t.Fatalf("%v, want the address that accepts", err)
			}
			host, _, _ := net.SplitHostPort(c.RemoteAddr().String())
			hosts[host] = true
			c.Close()
		}
		return hosts
	}
	dialled()
	if other, err := net.Listen("tcp", net.JoinHostPort("::1", port)); err == nil { // the machine has IPv6
		defer other.Close()
		if hosts := dialled(); len(hosts) != 2 {
			t.Errorf("dialled %v, want both addresses", hosts)
		}
	}
}
