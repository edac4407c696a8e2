package etcdstore_test

import (
	"bufio"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/etcdtest"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/etcdstore"
)

// received returns how many messages a server has received from clients, by method.
func received(t *testing.T, addr string) map[string]int {
	t.Helper()
	answer, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	all := make(map[string]int)
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		labels, value, ok := strings.Cut(strings.TrimPrefix(lines.Text(), "grpc_server_msg_received_total{"), "} ")
		_, method, named := strings.Cut(labels, `grpc_method="`)
		if !ok || !named || !strings.HasPrefix(lines.Text(), "grpc_server_msg_received_total{") {
			continue
		}
		method, _, _ = strings.Cut(method, `"`)
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatal(err)
		}
		all[method] += int(n)
	}
	return all
}

// Waiters for a lock that stays held send a keep-alive and a read in a third of their TTL, and
// change nothing.
func TestIdleWaitersOnlyRefresh(t *testing.T) {
	t.Parallel()
	const waiters, refreshes = 6, 3
	for _, kind := range []store.Kind{{}, store.Semaphore(2), store.ReadWrite} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel() // it mostly waits
			c := launch(t, etcdtest.Options{})
			all := func(ttl time.Duration) store.Lease {
				if kind.IsMutex() {
					return request("a", ttl)
				}
				return as(request("a", ttl), kind, kind.Normal().Limit)
			}
			acquire(t, open(t, c.Endpoints(), etcdstore.Options{MaxTTL: time.Hour}), all(time.Hour))
			for range waiters {
				waits(t, open(t, c.Endpoints(), etcdstore.Options{}), all(12*time.Second))
			}
			kept := func() int { return received(t, c.Members[0].Addr)["LeaseKeepAlive"] }
			eventually.True(t, "each waiter has refreshed its place", func() bool { return kept() >= waiters })
			client := native(t, c.Endpoints())
			revision := func() int64 {
				r, err := client.Get(t.Context(), "nothing")
				if err != nil {
					t.Fatal(err)
				}
				return r.Header.Revision
			}
			before, began := revision(), received(t, c.Members[0].Addr)
			eventually.True(t, "the waiters refresh their places", func() bool { return kept() >= began["LeaseKeepAlive"]+refreshes*waiters })
			ended := received(t, c.Members[0].Addr)
			if after := revision(); after != before {
				t.Errorf("the revision was %d and is %d: waiters change something", before, after)
			}
			keeps, others := ended["LeaseKeepAlive"]-began["LeaseKeepAlive"], 0
			for method, n := range ended {
				if method != "LeaseKeepAlive" {
					others += n - began[method]
				}
			}
			// Refreshes are under way at both ends.
			if most := keeps + waiters; others > most {
				t.Errorf("%d keep-alives and %d other requests, want at most %d: %v, and %v before", keeps, others, most, ended, began)
			}
			t.Logf("%d keep-alives, %d other requests", keeps, others)
		})
	}
}
