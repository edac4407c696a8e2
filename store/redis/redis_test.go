package redis_test

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/leasehold-dev/leasehold/internal/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redis"
	"github.com/leasehold-dev/leasehold/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens a store over the servers and closes it with the test.
func open(t *testing.T, servers []*redistest.Server, o *redis.Options) *redis.Store {
	t.Helper()
	s, err := redis.Open(t.Context(), urls(servers), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func urls(servers []*redistest.Server) []string {
	var addrs []string
	for _, s := range servers {
		addrs = append(addrs, s.Addr())
	}
	return []string{"redis://" + strings.Join(addrs, ",")}
}

func TestConformance(t *testing.T) {
	for _, c := range []struct {
		name  string
		nodes int
	}{{"OneNode", 1}, {"ThreeNodes", 3}, {"FiveNodes", 5}} {
		t.Run(c.name, func(t *testing.T) {
			servers := redistest.StartN(t, c.nodes)
			another := func(t *testing.T) store.Store { return open(t, servers, nil) }
			storetest.Run(t, another, storetest.Options{Second: another})
		})
	}
}
