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

// A wait that ends says of each server why it cannot be used, so that its last line is enough.
func TestWaitEndsWithEachServer(t *testing.T) {
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
	last := lastLineOf(p.err.String())
	for _, part := range []string{`gave up after 15s: acquire "x": 1 of 3 servers answered, 2 are needed: ` + servers[0].Addr() + ": taken by ", servers[1].Addr() + ": connection refused", servers[2].Addr() + ": connection refused"} {
		if !strings.Contains(last, part) {
			t.Errorf("the last line is %s, want text with %q", last, part)
		}
	}
}
