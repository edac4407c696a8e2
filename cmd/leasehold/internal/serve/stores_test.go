package serve_test

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve"
	"github.com/leasehold-dev/leasehold/internal/httpapi"
	"github.com/leasehold-dev/leasehold/internal/testenv/etcdtest"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/internal/testenv/sqltest"
	"github.com/leasehold-dev/leasehold/internal/testenv/zktest"
	"github.com/leasehold-dev/leasehold/store"
	_ "github.com/leasehold-dev/leasehold/store/etcdstore"
	_ "github.com/leasehold-dev/leasehold/store/redisstore"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
	_ "github.com/leasehold-dev/leasehold/store/zkstore"
)

// Two servers of one store keep the same locks, and each goes on with the leases of the other, also
// once that one has ended.
func TestServersOfOneStore(t *testing.T) {
	t.Run("Redis", func(t *testing.T) {
		testServersOfOneStore(t, "redis://"+redistest.Start(t).Addr()+"?node_timeout=5s")
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		s, err := sqltest.LaunchPostgreSQL()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		url := "postgres://" + s.User + ":" + s.Password + "@" + s.Addr + "/postgres?sslmode=disable"
		script, err := sqlstore.Script(sqlstore.PostgreSQL, "")
		if err != nil {
			t.Fatal(err)
		}
		db, err := sql.Open("pgx", url)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.ExecContext(t.Context(), script); err != nil {
			t.Fatal(err)
		}
		testServersOfOneStore(t, url)
	})
	t.Run("etcd", func(t *testing.T) {
		program, err := etcdtest.Installed()
		if err != nil {
			t.Fatal(err)
		}
		c, err := etcdtest.Launch(etcdtest.Options{Program: program})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		testServersOfOneStore(t, "etcd://"+c.Endpoints()[0])
	})
	t.Run("ZooKeeper", func(t *testing.T) {
		s, err := zktest.Launch(zktest.Options{Settings: []string{"maxSessionTimeout=10800000", "maxClientCnxns=0"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		testServersOfOneStore(t, "zookeeper://"+s.Addr)
	})
}

func testServersOfOneStore(t *testing.T, storeURL string) {
	opened := func() (url string, s *serve.Server) {
		st, err := store.Open(context.Background(), storeURL, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { st.Close() })
		return start(t, serve.Options{Store: st})
	}
	a, first := opened()
	b, _ := opened()
	want := func(what string, r *reply, kind string) {
		t.Helper()
		if r.kind != kind {
			t.Errorf("%s: %d %s, want %q", what, r.status, r.text, kind)
		}
	}

	owner := store.NewOwner()
	want("acquire", ask(t, "POST", a, "/v1/locks/plain/acquire", m{"owner": owner, "ttl_ms": 20_000}), "")
	want("acquire again", ask(t, "POST", a, "/v1/locks/plain/acquire", m{"owner": owner, "ttl_ms": 20_000}), "")
	want("acquire by another", ask(t, "POST", b, "/v1/locks/plain/acquire", m{"owner": store.NewOwner()}), httpapi.Busy)
	want("renew", ask(t, "POST", a, "/v1/locks/plain/renew", m{"owner": owner, "ttl_ms": 20_000}), "")
	want("renew at the other server", ask(t, "POST", b, "/v1/locks/plain/renew", m{"owner": owner, "ttl_ms": 20_000}), "")
	want("release at the other server", ask(t, "POST", b, "/v1/locks/plain/release", m{"owner": owner}), "")
	if r := ask(t, "GET", b, "/v1/locks/plain", nil); r.body["held"] != false {
		t.Errorf("after the release: %s", r.text)
	}

	over := remote(t, b, nil)
	l := store.Lease{Name: "over", Owner: store.NewOwner(), TTL: 20 * time.Second}
	if _, err := over.Acquire(t.Context(), store.AcquireRequest{Lease: l}); err != nil {
		t.Error(err)
	}
	want("acquire of what a store over HTTP holds", ask(t, "POST", a, "/v1/locks/over/acquire", m{"owner": owner}), httpapi.Busy)
	if err := over.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
		t.Error(err)
	}

	// The connection of a hold hands the lock to the waiter at the other server when it ends.
	h := open(t, a, "/v1/locks/hold/hold", m{"ttl_ms": 20_000})
	held := h.next()
	waiter := open(t, b, "/v1/locks/hold/hold", m{"ttl_ms": 20_000})
	if e := waiter.next(); e["event"] != "waiting" {
		t.Errorf("%v, want a waiter", e)
	}
	h.close()
	next := waiter.next("waiting")
	if next["event"] != "held" || next["token"].(float64) <= held["token"].(float64) {
		t.Errorf("after %v the waiter got %v", held, next)
	}
	want("break at the other server", ask(t, "POST", a, "/v1/locks/hold/break", m{"token": next["token"], "reason": "stuck", "now": true}), "")
	eventually.True(t, "the lock that was broken is free", func() bool { return ask(t, "GET", a, "/v1/locks/hold", nil).body["held"] == false })
	waiter.close()

	// A server that ends leaves its leases to the other one.
	kinds := []m{{"kind": "mutex"}, {"kind": "read"}, {"kind": "semaphore", "permits": 3, "weight": 2}}
	request := func(i int, more m) (path string, body m) {
		body = m{"ttl_ms": 5000, "keep": true}
		maps.Copy(body, kinds[i])
		maps.Copy(body, more)
		return fmt.Sprintf("/v1/locks/kept%d/hold", i), body
	}
	var kept []*lines
	for i := range kinds {
		path, body := request(i, nil)
		kept = append(kept, open(t, a, path, body))
	}
	leases := make([]map[string]any, len(kinds))
	for i, h := range kept {
		leases[i] = h.next()
	}
	hours := 200 // a lock of Terraform, for two hours
	if strings.HasPrefix(storeURL, "redis") {
		hours = 422
	}
	sends(t, hours, "LOCK", a+"/terraform/hours", infoWith("one"))
	first.Leave()
	for i, h := range kept {
		if e := h.next("held"); e["event"] != "leaving" || e["owner"] != leases[i]["owner"] {
			t.Errorf("from a server that ends: %v", e)
		}
	}
	first.Store.Close()
	for i := range kept {
		path, body := request(i, m{"owner": leases[i]["owner"]})
		on := open(t, b, path, body)
		if e := on.next(); e["event"] != "held" || e["token"] != leases[i]["token"] {
			t.Errorf("the holder goes on with %v, want %v", e, leases[i])
		}
		if r := ask(t, "POST", b, strings.TrimSuffix(path, "hold")+"release", m{"owner": leases[i]["owner"]}); r.kind != "" {
			t.Errorf("release after going on: %d %s", r.status, r.text)
		}
		if e := on.next("held"); e["event"] != "lost" {
			t.Errorf("after the release: %v", e)
		}
	}
	if hours == 200 {
		sends(t, 423, "LOCK", b+"/terraform/hours", infoWith("two"))
		sends(t, 200, "UNLOCK", b+"/terraform/hours", infoWith("one"))
		sends(t, 200, "LOCK", b+"/terraform/hours", infoWith("two"))
	}
}
