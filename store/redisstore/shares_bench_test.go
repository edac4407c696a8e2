package redisstore_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// kindsOfLock has a request for a lock of each kind.
var kindsOfLock = map[string]store.Lease{
	"mutex":  {},
	"reader": {Kind: store.ReadWrite, Weight: 1},
	"writer": {Kind: store.ReadWrite, Weight: store.ReadWriteLimit},
	"permit": {Kind: store.Semaphore(8), Weight: 1},
}

// attempt returns a request of a new attempt for the lock of that kind.
func attempt(kind string) store.Lease {
	r := kindsOfLock[kind]
	r.Name, r.Owner, r.Meta, r.TTL = "bench/"+kind, store.NewOwnerAt(time.Now()), `{"host":"h","pid":1}`, redisstore.DefaultMaxTTL/2
	return r
}

// BenchmarkKinds acquires and releases an uncontended lock of each kind, in turns. It reports the CPU time of the server for both, and how many times that of a mutex
// it is, which hardly depends on what else the machine does.
func BenchmarkKinds(b *testing.B) {
	for _, goroutines := range []int{1, 16} {
		b.Run(fmt.Sprintf("goroutines=%d", goroutines), func(b *testing.B) {
			server := redistest.Start(b)
			s, err := redisstore.Open(b.Context(), server.URL(), nil)
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			spent := map[string]time.Duration{}
			for done := 0; done < b.N; done += perTurn {
				for kind := range kindsOfLock {
					before := cpuTime(b, server)
					var all sync.WaitGroup
					for g := range goroutines {
						all.Go(func() {
							for range perTurn / goroutines {
								acquireAndRelease(b, s, kind, g)
							}
						})
					}
					all.Wait()
					spent[kind] += cpuTime(b, server) - before
				}
			}
			rounds := (b.N + perTurn - 1) / perTurn * perTurn
			for kind, d := range spent {
				b.ReportMetric(float64(d.Nanoseconds())/1e3/float64(rounds), kind+"-us")
				b.ReportMetric(float64(d)/float64(spent["mutex"]), kind+"/mutex")
			}
		})
	}
}

// perTurn is how many locks of a kind are acquired before it is the turn of the next kind.
const perTurn = 1 << 10

func acquireAndRelease(b *testing.B, s *store.Store, kind string, g int) {
	r := attempt(kind)
	r.Name += fmt.Sprint("/", g)
	if _, err := s.Acquire(context.Background(), store.AcquireRequest{Lease: r}); err != nil {
		b.Error(err)
		return
	}
	if err := s.Release(context.Background(), store.ReleaseRequest{Lease: r}); err != nil {
		b.Error(err)
	}
}

// cpuTime returns the CPU time that a server has used.
func cpuTime(b *testing.B, server *redistest.Server) (used time.Duration) {
	b.Helper()
	for line := range strings.Lines(server.Text(b, "INFO", "cpu")) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name != "used_cpu_user" && name != "used_cpu_sys" {
			continue
		}
		seconds, err := strconv.ParseFloat(value, 64)
		if err != nil {
			b.Fatal(err)
		}
		used += time.Duration(seconds * 1e9)
	}
	return used
}

// BenchmarkWorkers has 16 goroutines of two stores contend for a semaphore of 8 and for a mutex,
// in turns, and hold each for 5 ms. It reports the grants a second of each, and how many times
// those of the mutex the semaphore has.
func BenchmarkWorkers(b *testing.B) {
	server := redistest.Start(b)
	var stores []*store.Store
	for range 2 {
		s, err := redisstore.Open(b.Context(), server.URL(), nil)
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		stores = append(stores, s)
	}
	took, cpu, had := map[string]time.Duration{}, map[string]time.Duration{}, map[string]int{}
	for done := 0; done < b.N; done += 64 {
		for kind, n := range map[string]int{"mutex": 64, "permit": 8 * 64} {
			began, before := time.Now(), cpuTime(b, server)
			var all sync.WaitGroup
			for g := range 16 {
				all.Go(func() {
					for range n / 16 {
						waitAndRelease(b, stores[g%2], kind, 5*time.Millisecond)
					}
				})
			}
			all.Wait()
			took[kind], cpu[kind], had[kind] = took[kind]+time.Since(began), cpu[kind]+cpuTime(b, server)-before, had[kind]+n
		}
	}
	rate := func(kind string) float64 { return float64(had[kind]) / took[kind].Seconds() }
	for kind := range took {
		b.ReportMetric(rate(kind), kind+"/s")
		b.ReportMetric(cpu[kind].Seconds()*1e6/float64(had[kind]), kind+"-us")
	}
	b.ReportMetric(rate("permit")/rate("mutex"), "times")
	b.ReportMetric(0, "ns/op")
}

func waitAndRelease(b *testing.B, s *store.Store, kind string, hold time.Duration) {
	r := attempt(kind)
	grant, err := s.Wait(context.Background(), store.WaitRequest{Lease: r}, nil)
	if err != nil {
		b.Error(err)
		return
	}
	time.Sleep(hold)
	if err := s.Release(context.Background(), store.ReleaseRequest{Lease: grant.Lease}); err != nil {
		b.Error(err)
	}
}
