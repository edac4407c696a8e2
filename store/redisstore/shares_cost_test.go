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
func holdMany(t *testing.T, s *store.Store, name string, kind store.Kind, n int) []store.Lease {
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
				all[i].Slots = g.Lease.Slots
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
	const few, many, batch = 200, 2000, 200
	for name, kind := range map[string]store.Kind{"readers": store.ReadWrite, "permits": store.Semaphore(2048)} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			s := open(t, []string{server.Addr()}, patient())
			held := map[int][]store.Lease{}
			best := map[int]float64{}
			for _, n := range []int{few, many} {
				held[n], best[n] = holdMany(t, s, name+strconv.Itoa(n), kind, n), math.Inf(1)
			}
			// The same number of renewals in both locks, in turn, and the best of several times:
			// the machine may be busy, and interrupts long batches more often than short ones.
			for try := range 3 * many / batch {
				for n, all := range held {
					from := try * batch % n
					server.Text(t, "CONFIG", "RESETSTAT")
					for i, err := range s.Renew(t.Context(), all[from:from+batch]) {
						if err != nil {
							t.Fatalf("renewal of lease %d of %d: %v", from+i, n, err)
						}
					}
					best[n] = min(best[n], float64(timeInScripts(t, server))/batch)
				}
			}
			for _, all := range held {
				for _, r := range all[:2] { // what was renewed is all there, and can end
					mustRelease(t, s, r, store.Grant{})
				}
			}
			t.Logf("with %d %s %.1f us a renewal, with %d %.1f us", few, name, best[few], many, best[many])
			if best[many] > 4*best[few] {
				t.Errorf("one of %d renewals costs the server %.1f us among %d holders, and %.1f us among %d: want at most 4 times as much", batch, best[many], many, best[few], few)
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
