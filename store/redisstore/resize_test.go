package redisstore_test

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// reachedByProxies starts three servers, and a store that reaches them through proxies.
func reachedByProxies(t *testing.T) ([]*redistest.Server, []*faultproxy.Proxy, *redisstore.Store) {
	servers := redistest.StartN(t, 3)
	proxies := behind(t, servers)
	return servers, proxies, openVia(t, servers, proxies)
}

// A resize fails while a server cannot be reached, and the error says which. Nothing has changed.
// It works when the server is back.
func TestResizeNeedsAllServers(t *testing.T) {
	servers, proxies, s := reachedByProxies(t)
	two, three := store.Semaphore(2), store.Semaphore(3)
	r := shared("pool", three, 1)
	r.Slots = acquire(t, s, r).Slots
	proxies[1].RefuseNew()
	proxies[1].Cut()
	eventually.True(t, "the resize fails for the server that is cut off", func() bool {
		err := s.Resize(t.Context(), "pool", three, two)
		return errors.Is(err, store.ErrQuorum) && strings.Contains(err.Error(), servers[1].Addr()+": unreachable") && strings.Contains(err.Error(), "the number of permits is what it was")
	})
	acquire(t, s, shared("pool", three, 1))
	proxies[1].Pass()
	eventually.True(t, "the resize works", func() bool { return s.Resize(t.Context(), "pool", three, two) == nil })
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: shared("pool", three, 1)}); !errors.Is(err, store.ErrKindMismatch) {
		t.Errorf("acquire by the earlier number: %v, want %v", err, store.ErrKindMismatch)
	}
	if err := s.Renew(t.Context(), []store.Lease{r})[0]; err != nil {
		t.Errorf("renewal after the resize: %v", err)
	}
}

// A server that could lose the number of permits, such as one that evicts keys, does not take part
// in a resize, so the resize fails.
func TestResizeNeedsFitServers(t *testing.T) {
	servers := append(redistest.StartN(t, 2), redistest.Start(t, "--maxmemory", "100mb", "--maxmemory-policy", "volatile-lru"))
	s := open(t, addrs(servers), nil)
	two, three := store.Semaphore(2), store.Semaphore(3)
	acquire(t, s, shared("pool", three, 1))
	// While the store tries that server again, it counts as unreachable.
	eventually.True(t, "the server that evicts refuses the resize", func() bool {
		err := s.Resize(t.Context(), "pool", three, two)
		q, ok := errors.AsType[*store.QuorumError](err)
		if !ok || !strings.Contains(err.Error(), "maxmemory-policy volatile-lru") {
			t.Fatalf("resize beside a server that evicts: %v, want that it fails, and why", err)
		}
		return q.Nodes[2].Outcome == store.Refused
	})
	acquire(t, s, shared("pool", three, 1))
}

// A resize whose last answers are lost may have worked, and says so. Repeated, it works.
func TestResizeWhoseAnswerIsLost(t *testing.T) {
	_, proxies, s := reachedByProxies(t)
	two, three := store.Semaphore(2), store.Semaphore(3)
	r := shared("pool", three, 1)
	r.Slots = acquire(t, s, r).Slots
	proxies[2].CutReplyTo("\r\nset\r\n", 0)
	err := s.Resize(t.Context(), "pool", three, two)
	if !errors.Is(err, store.ErrAmbiguous) || !strings.Contains(err.Error(), "3 of 3 nodes may have 2 permits now: repeat") {
		t.Errorf("resize whose answer was lost: %v, want that it may have worked", err)
	}
	eventually.True(t, "the resize works when it is repeated", func() bool { return s.Resize(t.Context(), "pool", three, two) == nil })
	if st, err := s.Inspect(t.Context(), "pool"); err != nil || st.Kind != two || len(st.Holders) != 1 {
		t.Errorf("inspect: %+v, %v, want a semaphore of two permits with a holder", st, err)
	}
	if err := s.Renew(t.Context(), []store.Lease{r})[0]; err != nil {
		t.Errorf("renewal after the resize: %v", err)
	}
}

// A lease does not know of a resize. A server that lost it gets it back with the new number,
// unless it has a slot too many. A renewal whose servers have different numbers fails.
func TestLeaseAfterAResize(t *testing.T) {
	servers := redistest.StartN(t, 3)
	s := open(t, addrs(servers), &redisstore.Options{NodeTimeout: long})
	acquireOnAll(t, s, request("first")) // so that the client is connected to all servers
	two, three := store.Semaphore(2), store.Semaphore(3)
	held := make([]store.Lease, 3) // by slot
	for range held {
		r := shared("pool", three, 1)
		g := acquire(t, s, r)
		r.Slots = g.Slots
		held[g.Slot] = r
	}
	if err := s.Resize(t.Context(), "pool", three, two); err != nil {
		t.Fatal(err)
	}
	servers[0].Text(t, "DEL", "pool")
	for _, r := range held {
		if err := s.Renew(t.Context(), []store.Lease{r})[0]; err != nil {
			t.Errorf("renewal of slot %s after the resize: %v", r.Slots, err)
		}
	}
	eventually.True(t, "the server gets the leases back with the new number", func() bool {
		text := servers[0].Text(t, "GET", "pool")
		return strings.HasPrefix(text, " s2 ") && strings.Contains(text, held[0].Owner) && strings.Contains(text, held[1].Owner)
	})
	if text := servers[0].Text(t, "GET", "pool"); strings.Contains(text, held[2].Owner) {
		t.Errorf("the server has %q, want it without the lease that has a slot too many", text)
	}
	// The others have the earlier number, as after a resize that failed.
	for _, server := range servers[1:] {
		text := server.Text(t, "GET", "pool")
		if !regexp.MustCompile(`^ 2 s2 `).MatchString(text) {
			t.Fatalf("the record of a semaphore that was resized is %q, want its longer form", text)
		}
	}
	servers[1].Text(t, "SET", "pool", regexp.MustCompile(`^ 2 s2 0 \d+ \S+ 3 2 \d+ 1`).ReplaceAllString(servers[1].Text(t, "GET", "pool"), " s5 0"), "KEEPTTL")
	servers[2].Text(t, "SET", "pool", regexp.MustCompile(`^ 2 s2 0 \d+ \S+ 3 2 \d+ 1`).ReplaceAllString(servers[2].Text(t, "GET", "pool"), " s4 0"), "KEEPTTL")
	err := s.Renew(t.Context(), []store.Lease{held[0]})[0]
	if !errors.Is(err, store.ErrQuorum) || errors.Is(err, store.ErrNotHeld) || !strings.Contains(err.Error(), "it has 5 permits") || !strings.Contains(err.Error(), "it has 4 permits") {
		t.Errorf("renewal by servers with three numbers of permits: %v, want it refused with the numbers", err)
	}
}

// Clients of earlier versions read the record of a semaphore by this pattern, and take any other
// value for the lock of another client.
func TestEarlierVersionsRefuseARecordThatWasResized(t *testing.T) {
	earlier := regexp.MustCompile(`^ ([sr]\d+) (\d+)`)
	servers := redistest.StartN(t, 3)
	s := open(t, addrs(servers), nil)
	acquire(t, s, shared("pool", store.Semaphore(3), 1))
	for _, resized := range []bool{false, true} {
		if resized {
			if err := s.Resize(t.Context(), "pool", store.Semaphore(3), store.Semaphore(2)); err != nil {
				t.Fatal(err)
			}
		}
		for _, server := range servers {
			// The slowest server has it after the answer.
			eventually.True(t, fmt.Sprintf("it has a record (resized: %v) that earlier versions can only read if it was not", resized), func() bool {
				text := server.Text(t, "GET", "pool")
				return strings.HasPrefix(text, " ") && earlier.MatchString(text) != resized
			})
		}
	}
}
