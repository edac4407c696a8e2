package redisstore_test

import (
	"context"
	"math"
	"regexp"
	"strconv"
	"sync"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
)

var scriptTime = regexp.MustCompile(`cmdstat_eval(?:sha)?:calls=\d+,usec=(\d+)`)

// timeInScripts returns how long the server has run scripts (us) since CONFIG RESETSTAT.
func timeInScripts(t *testing.T, server *redistest.Server) (us int) {
	for _, m := range scriptTime.FindAllStringSubmatch(server.Text(t, "INFO", "commandstats"), -1) {
		n, _ := strconv.Atoi(m[1])
		us += n
	}
	return us
}

// holdMany acquires so many leases of a lock.
func holdMany(t *testing.T, s store.Store, name string, kind store.Kind, n int) []store.Lease {
	t.Helper()
	all := make([]store.Lease, n)
	next := make(chan int)
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for i := range next {
				all[i] = shared(name, kind, 1)
				g, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: all[i]})
				if err != nil {
					t.Error(err)
				}
				all[i].Slots = g.Slots
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
	return all
}

// A renewal costs a server the same, however many others hold the lock.
func TestRenewalCostsTheSameForManyHolders(t *testing.T) {
	for name, kind := range map[string]store.Kind{"readers": store.ReadWrite, "permits": store.Semaphore(2048)} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			s := open(t, []string{server.Addr()}, patient())
			cost := func(n int) float64 {
				held := holdMany(t, s, name+strconv.Itoa(n), kind, n)
				each := math.Inf(1) // the best of several times, since the machine may be busy
				for range 7 {
					server.Text(t, "CONFIG", "RESETSTAT")
					for i, err := range s.Renew(t.Context(), held) {
						if err != nil {
							t.Fatalf("renewal of lease %d: %v", i, err)
						}
					}
					each = min(each, float64(timeInScripts(t, server))/float64(n))
				}
				t.Logf("%d %s: %.1f us a renewal", n, name, each)
				for _, r := range held[:2] { // what was renewed is all there, and can end
					mustRelease(t, s, r, store.Grant{})
				}
				return each
			}
			cost(20) // the server has the script
			few, many := cost(200), cost(2000)
			if many > 4*few {
				t.Errorf("one of 2000 renewals costs the server %.1f us, and one of 200 %.1f us: want at most 4 times as much", many, few)
			}
		})
	}
}

// A thousand readers that wait for a writer are all served when it leaves, and a mutex of the same
// client is renewed meanwhile.
func TestManyReadersBehindAWriter(t *testing.T) {
	const n = 1000
	server := redistest.Start(t)
	s := open(t, []string{server.Addr()}, patient())
	mutex, writer := request("mutex"), shared("book", store.ReadWrite, store.ReadWriteLimit)
	acquire(t, s, mutex)
	acquire(t, s, writer)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	served := make(chan error, n)
	for range n {
		go func() {
			r := shared("book", store.ReadWrite, 1)
			_, err := s.Wait(ctx, store.WaitRequest{Lease: r}, nil)
			served <- err
		}()
	}
	eventually.True(t, "all wait", func() bool { return server.Text(t, "LLEN", "{book}:line") == strconv.Itoa(n) })
	server.Text(t, "CONFIG", "RESETSTAT")
	mustRelease(t, s, writer, store.Grant{})
	for i := range n {
		if err := <-served; err != nil {
			t.Fatalf("reader %d: %v", i, err)
		}
		if i%100 == 0 {
			if err := s.Renew(t.Context(), []store.Lease{mutex})[0]; err != nil {
				t.Errorf("renewal of a mutex while readers are served: %v", err)
			}
		}
	}
	t.Logf("the server ran scripts for %d us", timeInScripts(t, server))
}
