//go:build unix

package cli

import (
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
)

// patiently gives servers as long as a busy machine may need to answer.
const patiently = "?node_timeout=5s&connect_timeout=20s"

func addresses(servers []*redistest.Server) string {
	var addrs []string
	for _, s := range servers {
		addrs = append(addrs, s.Addr())
	}
	return strings.Join(addrs, ",")
}

// A wait says once why each server cannot be used: in a warning when that happens, and not again with
// the reason of the wait or at its end.
func TestWaitNamesEachServerOnce(t *testing.T) {
	t.Parallel() // it mostly waits
	servers := redistest.StartN(t, 3)
	s := newSite(t, storeVar+"=redis://"+addresses(servers)+patiently)
	h := s.hold("x", "--ttl", "1m")
	defer h.let()
	p := s.start("run", "x", "--wait", "15s", "--", "true")
	p.says(&p.err, "next in the queue")
	servers[1].Kill()
	servers[2].Kill()
	p.wants(125)
	said := p.err.String()
	for _, gone := range servers[1:] {
		if n := strings.Count(said, gone.Addr()); n != 1 {
			t.Errorf("%s is named %d times, want once:\n%s", gone.Addr(), n, said)
		}
	}
	for _, part := range []string{"; 1 of 3 servers answered, 2 are needed\n", `gave up after 15s: acquire "x": 1 of 3 servers answered, 2 are needed: ` + servers[0].Addr() + ": taken by "} {
		if !strings.Contains(said, part) {
			t.Errorf("stderr %s, want text with %q", said, part)
		}
	}
}
