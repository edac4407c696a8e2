package redisstore

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/view"
)

// The holder renews the lease after an operator has looked, and before the lease is broken.
func TestBreakAfterARenewal(t *testing.T) {
	t.Parallel()
	for _, count := range []int{1, 3} {
		for _, kind := range []store.Kind{{}, store.ReadWrite} {
			if count == 1 && kind != (store.Kind{}) {
				continue // the server itself says how long the lease lasts
			}
			t.Run(fmt.Sprint(count, kind), func(t *testing.T) {
				t.Parallel()
				s := openFor(t, redistest.StartN(t, count))
				r := store.Lease{Name: "a", Owner: store.NewOwner(), Kind: kind, TTL: time.Minute}
				g, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r})
				if err != nil {
					t.Fatal(err)
				}
				state, seen, err := s.inspect(t.Context(), "a")
				if err != nil {
					t.Fatal(err)
				}
				r.TTL, r.Slots = time.Hour, g.Lease.Slots
				if err := s.Renew(t.Context(), []store.Lease{r})[0]; err != nil {
					t.Fatal(err)
				}
				b := store.BreakRequest{Name: "a", Owner: r.Owner, Token: g.Token}
				h, found := view.LeaseOf(b, state)
				if !found {
					t.Fatalf("%+v has no lease with token %v", state, g.Token)
				}
				var left time.Duration
				if seen.HasPart(r.Owner) {
					left, err = breakParts(t.Context(), s, b, seen.Records)
				} else {
					left, err = breakWhole(t.Context(), s, b, h, seen)
				}
				if err != nil || left <= time.Minute || left > time.Hour {
					t.Errorf("%v left, %v, want more than a minute, up to an hour", left, err)
				}
			})
		}
	}
}

// If a lease ends at once, its holder is told before the lock is free.
func TestBreakNowTellsBeforeItFrees(t *testing.T) {
	t.Parallel()
	servers := redistest.StartN(t, 1)
	s := openFor(t, servers)
	r := store.Lease{Name: "a", Owner: store.NewOwner(), TTL: time.Minute}
	g, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r})
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", servers[0].Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	lines := bufio.NewScanner(c)
	if _, err := fmt.Fprint(c, "MONITOR\r\n"); err != nil || !lines.Scan() {
		t.Fatal(err, lines.Err())
	}
	if _, err := s.BreakLease(t.Context(), store.BreakRequest{Name: "a", Owner: r.Owner, Token: g.Token, Now: true}); err != nil {
		t.Fatal(err)
	}
	told := false
	for lines.Scan() {
		line := strings.ToUpper(lines.Text())
		told = told || strings.Contains(line, `"PUBLISH"`)
		if strings.Contains(line, `"DEL" "A"`) {
			break
		}
	}
	if err := lines.Err(); err != nil || !told {
		t.Errorf("%v; the holder was told: %v, want that before its lock is deleted", err, told)
	}
}

// openFor returns a store of the servers that allows a TTL of an hour.
func openFor(t *testing.T, servers []*redistest.Server) *engine {
	var addrs []string
	for _, s := range servers {
		addrs = append(addrs, s.Addr())
	}
	return stepsStore(t, "redis://"+strings.Join(addrs, ",")+"?max_ttl=1h")
}

// A break leaves a tombstone that lasts longer as it is, with and without the lease: a request
// against which it was left may still arrive.
func TestBreakKeepsALongerTombstone(t *testing.T) {
	t.Parallel()
	servers := redistest.StartN(t, 3)
	s := openFor(t, servers)
	r := store.Lease{Name: "a", Owner: store.NewOwner(), TTL: time.Minute}
	g, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r})
	if err != nil {
		t.Fatal(err)
	}
	tombstone := "{a}:gone:" + r.Owner
	for i, server := range servers {
		server.Text(t, "SET", tombstone, "", "EX", "3600")
		if i == 0 {
			server.Text(t, "DEL", "a")
		}
	}
	if _, err := s.BreakLease(t.Context(), store.BreakRequest{Name: "a", Owner: r.Owner, Token: g.Token}); err != nil {
		t.Fatal(err)
	}
	for i, server := range servers {
		if left := server.Text(t, "TTL", tombstone); len(left) != 4 {
			t.Errorf("the tombstone at server %d lasts %s s, want nearly 3600", i, left)
		}
	}
}
