package doctor

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
)

// Dangers to locks on a real cluster are found at the master that has them. Sound settings
// are not reported, and no key changes.
func TestRealCluster(t *testing.T) {
	c := redistest.StartCluster(t, 3, 0, "--cluster-require-full-coverage", "no")
	look := func(userinfo string) (codes []string, said string) {
		t.Helper()
		url := "redis-cluster://" + userinfo + c.Masters[0].Addr() + "?" + patient
		e, err := redisadmin.ExamineCluster(t.Context(), url, nil, redisadmin.Scope{TTL: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range RedisCluster(e) {
			codes = append(codes, f.Severity.String()+":"+string(f.Code)+" "+f.Node)
			said += f.Message + "\n"
		}
		return codes, said
	}
	has := func(codes []string, code Code, node string) bool {
		return slices.ContainsFunc(codes, func(s string) bool { return strings.HasSuffix(s, ":"+string(code)+" "+node) })
	}
	codes, said := look("")
	for _, s := range c.Masters {
		if !has(codes, "persistence-none", s.Addr()) {
			t.Errorf("%s has the findings %q, want persistence-none", s.Addr(), codes)
		}
		if keys := s.Keys(t); len(keys) != 0 {
			t.Errorf("keys %q are left, want none", keys)
		}
	}
	if slices.ContainsFunc(codes, func(s string) bool { return strings.HasPrefix(s, "error:") }) || strings.Contains(strings.Join(codes, " "), string("cluster")+" ") {
		t.Errorf("a sound cluster: %q\n%s", codes, said)
	}
	if has(codes, "waiters-poll", c.Masters[0].Addr()) {
		t.Errorf("unexpected finding waiters-poll: %s", said)
	}

	for i, s := range c.Masters {
		s.Text(t, "ACL", "SETUSER", "u", "reset", "on", ">pw", "~*", "&*", "+@all", "-spublish")
		if i == 1 {
			s.Text(t, "CONFIG", "SET", "maxmemory", "100mb")
			s.Text(t, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
			s.Text(t, "ACL", "SETUSER", "u", "-linsert")
		}
	}
	codes, said = look("u:pw@")
	if !has(codes, "eviction", c.Masters[1].Addr()) || has(codes, "eviction", c.Masters[0].Addr()) {
		t.Errorf("a server that evicts: %q, want the finding only at that server", codes)
	}
	if !has(codes, "right-missing", c.Masters[1].Addr()) || !strings.Contains(said, "linsert") || !has(codes, "waiters-poll", c.Masters[0].Addr()) {
		t.Errorf("missing rights: %q\n%s", codes, said)
	}
	c.Masters[2].Text(t, "CLUSTER", "DELSLOTS", "16383")
	c.Masters[0].Text(t, "CLUSTER", "DELSLOTS", "16383")
	if codes, said = look(""); !has(codes, "slots-unserved", "") || !strings.Contains(said, "1 of 16384") {
		t.Errorf("without a server for one slot: %q\n%s", codes, said)
	}
	reset := c.Masters[1]
	reset.Text(t, "FLUSHALL")
	reset.Text(t, "CLUSTER", "RESET")
	for _, s := range []*redistest.Server{redistest.Start(t), reset} {
		e, err := redisadmin.ExamineCluster(t.Context(), "redis-cluster://"+s.Addr(), nil, redisadmin.Scope{TTL: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if fs := RedisCluster(e); len(fs) != 1 || fs[0].Code != "no-cluster" || fs[0].Severity != Error || fs[0].Node != s.Addr() || !strings.Contains(fs[0].Advice, "Name a server") {
			t.Errorf("a server in no cluster: %+v, want one error that advises to name a server of the cluster", fs)
		}
	}
	for _, s := range c.Masters {
		s.Kill()
	}
	if codes, _ = look(""); !has(codes, "node-unreachable", c.Masters[0].Addr()) {
		t.Errorf("with all servers down: %q, want the finding node-unreachable", codes)
	}
}
