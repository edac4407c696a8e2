package redistest

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/localredis"
)

// Cluster is a Redis Cluster.
type Cluster struct {
	Masters  []*Server // as it began
	Replicas []*Server // the first of the first master, and so on
}

// StartCluster launches a cluster with the given number of masters, and of
// replicas for each. It waits until the cluster works, and ends it with the test,
// as Start does.
func StartCluster(t testing.TB, masters, replicas int, args ...string) *Cluster {
	t.Helper()
	args = append([]string{"--repl-diskless-sync-delay", "0"}, args...)
	servers := launch(t, masters*(1+replicas), Options{Cluster: true, Args: args})
	if err := localredis.Join(plain(servers), masters); err != nil {
		t.Fatal(err)
	}
	return &Cluster{Masters: servers[:masters], Replicas: servers[masters:]}
}

// Grow adds a master without slots.
func (c *Cluster) Grow(t testing.TB) *Server {
	t.Helper()
	s := launch(t, 1, Options{Cluster: true})[0]
	if err := s.Joins(plain(c.All())); err != nil {
		t.Fatal(err)
	}
	c.Masters = append(c.Masters, s)
	return s
}

func plain(servers []*Server) []*localredis.Server {
	all := make([]*localredis.Server, len(servers))
	for i, s := range servers {
		all[i] = s.Server
	}
	return all
}

// All returns the masters and the replicas.
func (c *Cluster) All() []*Server { return slices.Concat(c.Masters, c.Replicas) }

// Slot returns the slot of a key, as the servers compute it.
func (c *Cluster) Slot(t testing.TB, key string) string {
	t.Helper()
	return c.up(t).Text(t, "CLUSTER", "KEYSLOT", key)
}

// Has returns the server that has the slot of a key according to all servers that
// are up, or nil if they do not agree.
func (c *Cluster) Has(t testing.TB, key string) *Server {
	t.Helper()
	slot, _ := strconv.Atoi(c.Slot(t, key))
	var found *Server
	for _, s := range c.All() {
		if s.PID() == 0 {
			continue
		}
		words := strings.Split(s.Text(t, "CLUSTER", "SLOTS"), "\n")
		port := ""
		for i := 0; i+3 < len(words); i++ {
			first, err1 := strconv.Atoi(words[i])
			last, err2 := strconv.Atoi(words[i+1])
			if err1 == nil && err2 == nil && words[i+2] == "127.0.0.1" && first <= slot && slot <= last {
				port = words[i+3]
			}
		}
		at := slices.IndexFunc(c.All(), func(s *Server) bool { return s.Addr() == "127.0.0.1:"+port })
		if at < 0 || found != nil && found != c.All()[at] {
			return nil
		}
		found = c.All()[at]
	}
	return found
}

func (c *Cluster) up(t testing.TB) *Server {
	t.Helper()
	all := c.All()
	at := slices.IndexFunc(all, func(s *Server) bool { return s.PID() != 0 })
	if at < 0 {
		t.Fatal("no server of the cluster is up")
	}
	return all[at]
}

// Move is a slot that is moved to another master, step by step.
type Move struct {
	c        *Cluster
	slot     string
	from, to *Server
}

// Move moves the slot of a key to another master, with all keys in it.
func (c *Cluster) Move(t testing.TB, key string, to *Server) {
	t.Helper()
	m := c.BeginMove(t, key, to)
	m.Carry(t)
	m.End(t)
}

// BeginMove tells both masters that the slot of a key is about to move.
func (c *Cluster) BeginMove(t testing.TB, key string, to *Server) *Move {
	t.Helper()
	m := &Move{c, c.Slot(t, key), c.Has(t, key), to}
	eventually.True(t, "all members know the epoch of the cluster", func() bool { return c.epochsAgree(t) })
	to.Text(t, "CLUSTER", "SETSLOT", m.slot, "IMPORTING", m.from.Text(t, "CLUSTER", "MYID"))
	m.from.Text(t, "CLUSTER", "SETSLOT", m.slot, "MIGRATING", to.Text(t, "CLUSTER", "MYID"))
	return m
}

// epochsAgree reports whether all servers that are up know of the same epoch. A server to which a slot
// comes takes the next one. If it did not know of the latest, another server could have the same,
// and the members might never agree which of them has the slot.
func (c *Cluster) epochsAgree(t testing.TB) bool {
	t.Helper()
	known := ""
	for _, s := range c.All() {
		if s.PID() == 0 {
			continue
		}
		_, after, _ := strings.Cut(s.Text(t, "CLUSTER", "INFO"), "cluster_current_epoch:")
		epoch, _, _ := strings.Cut(after, "\r\n")
		if known != "" && known != epoch {
			return false
		}
		known = epoch
	}
	return true
}

// Carry migrates the given keys, or all keys of the slot if none are given.
func (m *Move) Carry(t testing.TB, keys ...string) {
	t.Helper()
	_, port, _ := strings.Cut(m.to.Addr(), ":")
	for {
		some := keys
		if len(keys) == 0 {
			some = strings.Fields(m.from.Text(t, "CLUSTER", "GETKEYSINSLOT", m.slot, "1000"))
		}
		if len(some) > 0 {
			m.from.Text(t, append([]string{"MIGRATE", "127.0.0.1", port, "", "0", "5000", "KEYS"}, some...)...)
		}
		if len(keys) > 0 || len(some) == 0 {
			return
		}
	}
}

// End migrates the remaining keys and tells all servers that the slot has moved.
func (m *Move) End(t testing.TB) {
	t.Helper()
	m.Carry(t)
	id := m.to.Text(t, "CLUSTER", "MYID")
	m.to.Text(t, "CLUSTER", "SETSLOT", m.slot, "NODE", id)
	m.from.Text(t, "CLUSTER", "SETSLOT", m.slot, "NODE", id)
}
