package redisstore_test

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// Servers that can lose locks without a restart are refused as nodes.
func TestUnfitNodes(t *testing.T) {
	for name, c := range map[string]struct {
		settings func(master string) []string
		want     string
	}{
		"a replica": {func(master string) []string {
			host, port, _ := net.SplitHostPort(master)
			return []string{"--replicaof", host, port}
		}, "role slave"},
		"a server that evicts": {func(string) []string {
			return []string{"--maxmemory", "100mb", "--maxmemory-policy", "volatile-lru"}
		}, "maxmemory-policy volatile-lru"},
		"a cluster": {func(string) []string { return []string{"--cluster-enabled", "yes"} }, "runs as a cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			fit := redistest.StartN(t, 2)
			unfit := redistest.Start(t, c.settings(fit[0].Addr())...)
			nodes := []string{fit[0].Addr(), fit[1].Addr(), unfit.Addr()}
			s, err := redisstore.Open(t.Context(), "redis://"+strings.Join(nodes, ","), nil)
			if err != nil {
				t.Fatal(err) // two of three are enough
			}
			defer s.Close()
			fit[1].Kill()
			eventually.True(t, "the node is named", func() bool {
				_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("a")})
				var q *store.QuorumError
				return errors.As(err, &q) && q.Nodes[2].Outcome == store.Refused && strings.Contains(err.Error(), c.want)
			})
		})
	}
}
