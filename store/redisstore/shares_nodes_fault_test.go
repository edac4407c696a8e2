package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// register has the holders of a semaphore and a read-write lock, as each reports itself.
type register struct {
	t       *testing.T
	mu      sync.Mutex
	permits map[int64]string // the owner of each slot
	last    map[int64]uint64 // the last token of each slot
	readers int
	writer  string
	largest uint64 // token of all grants of the read-write lock
	wrote   uint64 // token of the last writer
	turns   int
}

func (g *register) enter(r store.Lease, grant store.Grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.turns++
	token := uint64(grant.Token)
	if !r.Kind.Shared {
		numbers := grant.Lease.Slots
		if int64(len(numbers)) != r.Weight {
			g.t.Errorf("slots %v for weight %d, want as many", numbers, r.Weight)
		}
		for _, n := range numbers {
			if other, taken := g.permits[n]; taken || n >= r.Kind.Limit {
				g.t.Errorf("slot %d of %d is granted to %s and held by %q", n, r.Kind.Limit, r.Owner, other)
			}
			if token <= g.last[n] {
				g.t.Errorf("slot %d is granted with token %d after %d, want a larger one", n, token, g.last[n])
			}
			g.permits[n], g.last[n] = r.Owner, token
		}
		return
	}
	writes := r.Weight > 1
	if g.writer != "" || writes && g.readers > 0 {
		g.t.Errorf("%s with weight %d beside writer %q and %d readers", r.Owner, r.Weight, g.writer, g.readers)
	}
	if writes && token <= g.largest || token <= g.wrote {
		g.t.Errorf("weight %d is granted token %d, want a larger one: the largest so far is %d, and that of the last writer %d", r.Weight, token, g.largest, g.wrote)
	}
	if g.largest = max(g.largest, token); writes {
		g.writer, g.wrote = r.Owner, token
	} else {
		g.readers++
	}
}

func (g *register) leave(r store.Lease, grant store.Grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, n := range grant.Lease.Slots {
		delete(g.permits, n)
	}
	switch {
	case !r.Kind.Shared:
	case r.Weight > 1:
		g.writer = ""
	default:
		g.readers--
	}
}

// Two of five servers hang in turn, and execute later the requests that were sent to them: no slot
// has two holders, a writer is never beside a reader, tokens rise, every worker gets its turns, and
// no keys are left in the end.
func TestKindsWhileServersHangInTurn(t *testing.T) {
	t.Parallel() // it mostly waits
	const workers, rounds = 9, 8
	servers := redistest.StartN(t, 5)
	all := &register{t: t, permits: map[int64]string{}, last: map[int64]uint64{}}
	stop := make(chan struct{})
	var chaos, work sync.WaitGroup
	chaos.Go(func() {
		for i := 0; ; i++ {
			for _, k := range []int{i, i + 2} {
				if err := servers[k%5].Freeze(); err != nil {
					t.Error(err)
				}
			}
			over := false
			select {
			case <-stop:
				over = true
			case <-time.After(150 * time.Millisecond):
			}
			for _, k := range []int{i, i + 2} {
				if err := servers[k%5].Thaw(); err != nil {
					t.Error(err)
				}
			}
			if over {
				return
			}
		}
	})
	for range workers {
		s := open(t, addrs(servers), &redisstore.Options{NodeTimeout: 5 * time.Second})
		work.Go(func() {
			for range rounds {
				var r store.Lease
				switch n := rand.IntN(10); {
				case n < 5:
					r = shared("pool", store.Semaphore(4), 1+rand.Int64N(2))
				case n < 8:
					r = shared("book", store.ReadWrite, 1)
				default:
					r = shared("book", store.ReadWrite, store.ReadWriteLimit)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
				grant, err := s.Wait(ctx, store.WaitRequest{Lease: r}, nil)
				cancel()
				if err != nil {
					st, _ := s.Inspect(t.Context(), r.Name)
					t.Errorf("wait for %q with weight %d: %v; %+v", r.Name, r.Weight, err, st)
					return
				}
				r.Owner = grant.Lease.Owner
				all.enter(r, grant)
				r.Slots = grant.Lease.Slots
				if err := s.Renew(t.Context(), []store.Lease{r})[0]; err != nil && !errors.Is(err, store.ErrQuorum) {
					t.Errorf("renew: %v", err)
				}
				all.leave(r, grant)
				if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r, Renewed: true}); err != nil && !errors.Is(err, store.ErrQuorum) {
					t.Errorf("release: %v", err)
				}
			}
		})
	}
	work.Wait()
	close(stop)
	chaos.Wait()
	if all.turns != workers*rounds {
		t.Errorf("%d turns, want %d", all.turns, workers*rounds)
	}
	for _, name := range []string{"pool", "book"} {
		eventually.True(t, "no keys are left of "+name, noLock(t, servers, name))
	}
}

// openVia opens a store whose connections to the servers lead through the proxies.
func openVia(t *testing.T, servers []*redistest.Server, proxies []*faultproxy.Proxy) *store.Store {
	u := &tunnel{leads: map[string]string{}}
	for i, p := range proxies {
		u.leads[servers[i].Addr()] = p.Addr()
	}
	return open(t, addrs(servers), &redisstore.Options{NodeTimeout: long, ConnectTimeout: long, Dial: u.dial})
}

// slotsAt returns the slots that an owner has at a server, empty if it has no grant there.
func slotsAt(t *testing.T, server *redistest.Server, r store.Lease) string {
	lock, held := server.Text(t, "GET", r.Name), server.Text(t, "HGET", "{"+r.Name+"}:held", r.Owner)
	words := strings.Fields(held)
	if strings.Contains(lock, r.Owner) { // the only grant
		words = strings.Fields(lock)[3:]
	}
	if lock == "(nil)" || len(words) < 5 {
		return ""
	}
	return words[4]
}

// Two permits are released, and one release arrives at one server first and the other at another,
// so that the servers hand different slots to the waiters. In the end all servers agree.
func TestCrossedReleases(t *testing.T) {
	for round := range 4 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			servers := redistest.StartN(t, 3)
			slow1, slow2 := behind(t, servers), behind(t, servers)
			s, s1, s2 := open(t, addrs(servers), nil), openVia(t, servers, slow1), openVia(t, servers, slow2)
			kind := store.Semaphore(2)
			a, b := shared("pool", kind, 1), shared("pool", kind, 1)
			for _, of := range []struct {
				s *store.Store
				r store.Lease
			}{{s1, a}, {s2, b}} {
				acquire(t, of.s, of.r)
				for _, server := range servers { // otherwise a slow server could give a's slot to b
					eventually.True(t, "every server has granted the permit", func() bool { return slotsAt(t, server, of.r) != "" })
				}
			}
			c, d := shared("pool", kind, 1), shared("pool", kind, 1)
			first := wait(t, t.Context(), s, servers, c)
			second := wait(t, t.Context(), s, servers, d)
			for i := range servers {
				if i != round%3 {
					slow1[i].HoldRequests()
				}
				if i != (round+1)%3 {
					slow2[i].HoldRequests()
				}
			}
			var releases sync.WaitGroup
			var failed atomic.Int64
			for _, of := range []struct {
				s *store.Store
				r store.Lease
			}{{s1, a}, {s2, b}} {
				releases.Go(func() {
					if err := of.s.Release(t.Context(), store.ReleaseRequest{Lease: of.r}); err != nil {
						failed.Add(1)
					}
				})
			}
			eventually.True(t, "each release is executed at one server", func() bool {
				return slotsAt(t, servers[round%3], a) == "" && slotsAt(t, servers[(round+1)%3], b) == ""
			})
			for i := range servers {
				slow2[i].Pass()
				slow1[i].Pass()
			}
			releases.Wait()
			if failed.Load() > 0 {
				t.Error("a release failed")
			}
			gc, gd := grantedSoon(t, first), grantedSoon(t, second)
			c, d = gc.Lease, gd.Lease
			if slices.Equal(c.Slots, d.Slots) || c.Slots == nil || d.Slots == nil {
				t.Fatalf("slots %v and %v, want two different ones", c.Slots, d.Slots)
			}
			eventually.True(t, "all servers agree", func() bool {
				for _, err := range s.Renew(t.Context(), []store.Lease{c, d}) {
					if err != nil {
						t.Fatal(err)
					}
				}
				for _, server := range servers {
					if slotsAt(t, server, c) != string(rule.SlotsOf(c.Slots...)) || slotsAt(t, server, d) != string(rule.SlotsOf(d.Slots...)) {
						return false
					}
				}
				return true
			})
			for _, r := range []store.Lease{c, d} {
				if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r, Renewed: true}); err != nil {
					t.Error(err)
				}
			}
			eventually.True(t, "no keys are left", noLock(t, servers, "pool"))
		})
	}
}

// hasAll reports whether a server has these leases, permits with the slots of their grants.
func hasAll(t *testing.T, server *redistest.Server, leases []store.Lease) bool {
	for _, r := range leases {
		if slots := slotsAt(t, server, r); slots == "" || !r.Kind.Shared && slots != string(rule.SlotsOf(r.Slots...)) {
			return false
		}
	}
	return true
}

// Leases of permits and of readers survive the restart of one server after the other, each of which
// loses them, while others wait for the lock.
func TestSharesOutliveRestarts(t *testing.T) {
	t.Parallel() // it mostly waits
	servers := redistest.StartN(t, 3)
	o := &redisstore.Options{NodeTimeout: 2 * time.Second, MaxTTL: 8 * time.Second}
	s, other := open(t, addrs(servers), o), open(t, addrs(servers), o)
	for _, server := range servers {
		server.Declare()
	}
	brief := func(name string, kind store.Kind, weight int64) store.Lease {
		r := shared(name, kind, weight)
		r.TTL = o.MaxTTL
		return r
	}
	held := []store.Lease{brief("pool", store.Semaphore(2), 1), brief("pool", store.Semaphore(2), 1), brief("book", store.ReadWrite, 1), brief("book", store.ReadWrite, 1)}
	for i := range held {
		held[i] = acquire(t, s, held[i]).Lease
	}
	permit, writer := brief("pool", store.Semaphore(2), 2), brief("book", store.ReadWrite, store.ReadWriteLimit)
	waitPermit, waitWriter := waits(t.Context(), other, permit), waits(t.Context(), other, writer)
	for _, server := range servers {
		restart(t, server)
		// The server grants nothing before its quarantine is over.
		for deadline := time.Now().Add(time.Minute); !hasAll(t, server, held); time.Sleep(o.MaxTTL / 40) {
			for i, err := range s.Renew(t.Context(), held) {
				if errors.Is(err, store.ErrNotHeld) {
					t.Fatalf("renewal of %v: %v, want anything but ErrNotHeld", held[i], err)
				}
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s does not have all leases again", server.Addr())
			}
		}
	}
	select {
	case o := <-waitPermit:
		t.Fatalf("granted permits while both of two are held: %+v", o)
	case o := <-waitWriter:
		t.Fatalf("granted to a writer beside readers: %+v", o)
	default:
	}
	for _, r := range held {
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r, Renewed: true}); err != nil {
			t.Error(err)
		}
	}
	mustRelease(t, other, permit, grantedSoon(t, waitPermit))
	mustRelease(t, other, writer, grantedSoon(t, waitWriter))
}
