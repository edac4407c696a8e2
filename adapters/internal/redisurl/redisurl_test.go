package redisurl_test

import (
	"errors"
	"testing"

	"github.com/leasehold-dev/leasehold/adapters/internal/redisurl"
	"github.com/leasehold-dev/leasehold/store"
)

func TestOf(t *testing.T) {
	for _, c := range []struct {
		scheme string
		secure bool
		addrs  []string
		db     int
		want   string
	}{
		{"redis", false, []string{"10.0.0.1:6379"}, 0, "redis://10.0.0.1:6379"},
		{"redis", true, []string{"[::1]:6380"}, 2, "rediss://[::1]:6380/2"},
		{"redis", false, []string{":6379"}, 0, "redis://localhost:6379"},
		{"redis-sentinel", true, []string{"a:1", "b:2"}, 0, "rediss-sentinel://a:1,b:2"},
		{"redis-cluster", false, nil, 0, "redis-cluster://"},
	} {
		if got, err := redisurl.Of(c.scheme, c.secure, c.addrs, c.db); got != c.want || err != nil {
			t.Errorf("Of(%q, %v, %q, %d) = %q, %v, want %q", c.scheme, c.secure, c.addrs, c.db, got, err, c.want)
		}
	}
	for _, addr := range []string{"a:1,b:2", "a:1/2", "user@a:1", "a:1?max_ttl=1h", "a:1 b:2"} {
		if got, err := redisurl.Of("redis", false, []string{addr}, 0); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("Of with the address %q = %q, %v, want ErrInvalid", addr, got, err)
		}
	}
}
