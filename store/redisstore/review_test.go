package redisstore_test

import (
	"net"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/nodemark"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// quick is a longest TTL with which a review takes place each half second.
const quick = "?max_ttl=1s&node_timeout=500ms"

// A connected client notices a change of a server's settings, even if it makes no call.
func TestSettingsChangeUnderAConnection(t *testing.T) {
	t.Parallel()
	always := []string{"--appendonly", "yes", "--appendfsync", "always"}
	unfit := func(word string) func(*redistest.Server, *store.Store) bool {
		return func(_ *redistest.Server, c *store.Store) bool {
			err := redisstore.StatsOf(c).Nodes[0].Err
			return err != nil && strings.Contains(err.Error(), word)
		}
	}
	isDurable := func(want bool) func(*redistest.Server, *store.Store) bool {
		return func(s *redistest.Server, _ *store.Store) bool {
			m, err := nodemark.Parse(s.Text(t, "GET", redistest.Mark))
			return err == nil && m.Durable > 0 == want
		}
	}
	for name, c := range map[string]struct {
		change, back [][]string
		seen, mended func(*redistest.Server, *store.Store) bool
	}{
		"no longer synced": {
			[][]string{{"CONFIG", "SET", "appendfsync", "everysec"}}, [][]string{{"CONFIG", "SET", "appendfsync", "always"}},
			isDurable(false), isDurable(true),
		},
		"not synced while it is rewritten": {
			[][]string{{"CONFIG", "SET", "no-appendfsync-on-rewrite", "yes"}}, [][]string{{"CONFIG", "SET", "no-appendfsync-on-rewrite", "no"}},
			isDurable(false), isDurable(true),
		},
		"no longer appended": {
			[][]string{{"CONFIG", "SET", "appendonly", "no"}}, [][]string{{"CONFIG", "SET", "appendonly", "yes"}},
			isDurable(false), isDurable(true),
		},
		"no longer readable": {
			[][]string{{"ACL", "SETUSER", "default", "-config|get"}}, nil,
			isDurable(false), nil,
		},
		"may evict": {
			[][]string{{"CONFIG", "SET", "maxmemory", "1gb"}, {"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"}}, nil,
			unfit("evict"), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := redistest.StartN(t, 3, always...)
			s := openURL(t, "redis://"+strings.Join(addrs(servers), ",")+quick)
			uses(t, s)
			eventually.True(t, "the mark shows the server as durable", func() bool { return isDurable(true)(servers[0], s) })
			for _, words := range c.change {
				servers[0].Text(t, words...)
			}
			eventually.True(t, "the client has noticed the change", func() bool { return c.seen(servers[0], s) })
			for _, words := range c.back {
				servers[0].Text(t, words...)
			}
			if c.mended != nil {
				eventually.True(t, "the client has noticed that the change was undone", func() bool { return c.mended(servers[0], s) })
			}
		})
	}
}

// A client that gets no push when a server's data is replaced notices it in the next review.
func TestReplacedDataWithoutTracking(t *testing.T) {
	servers := redistest.StartN(t, 3, atOnce...)
	for _, s := range servers {
		s.Text(t, "ACL", "SETUSER", "locker", "on", ">x", "~*", "&*", "+@all", "-client|tracking")
	}
	s := openURL(t, "redis://locker:x@"+strings.Join(addrs(servers), ",")+"?max_ttl=1s&node_timeout=500ms")
	uses(t, s)
	replica := redistest.Start(t, atOnce...)
	follow := func(server, master *redistest.Server) {
		t.Helper()
		host, port, _ := net.SplitHostPort(master.Addr())
		server.Text(t, "REPLICAOF", host, port)
		eventually.True(t, "the replica is in step", func() bool {
			return strings.Contains(server.Text(t, "INFO", "replication"), "master_link_status:up")
		})
		server.Text(t, "REPLICAOF", "NO", "ONE")
	}
	follow(replica, servers[0])
	follow(servers[0], replica) // whose mark names servers[0], too
	eventually.True(t, "the client has noticed that the data was replaced", func() bool {
		n := redisstore.StatsOf(s).Nodes[0]
		return n.QuarantinedFor > 0 && strings.Contains(n.Why.Error(), "another server")
	})
}
