package sqlstoretest

import (
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

// benchmark runs a benchmark on a server of each kind that keeps what it has committed.
func benchmark(b *testing.B, run func(b *testing.B, on *bed, schema string)) {
	for _, on := range beds {
		b.Run(on.name, func(b *testing.B) {
			server, err := on.launch(on.durable...)
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(server.Close)
			own := on.at(server)
			run(b, own, own.newSchema(b))
		})
	}
}

// BenchmarkLock acquires and releases locks. Each goroutine has a lock of its own.
func BenchmarkLock(b *testing.B) { benchmark(b, benchmarkLock) }

func benchmarkLock(b *testing.B, on *bed, schema string) {
	for _, n := range []int{1, 16} {
		each := func(b *testing.B, one func(i int) error) {
			var wg sync.WaitGroup
			b.ResetTimer()
			for i := range n {
				wg.Go(func() {
					for range b.N / n {
						if err := one(i); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "locks/s")
		}
		b.Run(fmt.Sprintf("advisory/%d", n), func(b *testing.B) {
			db := on.handle(b)
			db.SetMaxIdleConns(n)
			conns := make([]*sql.Conn, n)
			for i := range conns {
				var err error
				if conns[i], err = db.Conn(b.Context()); err != nil {
					b.Fatal(err)
				}
				defer conns[i].Close()
			}
			each(b, func(i int) error { return advisory(b, on, conns[i], i, func() {}) })
		})
		for _, class := range []store.Class{store.CrashSafe, store.Efficiency} {
			b.Run(fmt.Sprintf("%v/%d", class, n), func(b *testing.B) {
				s := on.open(b, schema, sqlstore.Options{})
				each(b, func(i int) error {
					l := lease(fmt.Sprint("bench ", i))
					l.Require = class
					if _, err := s.Wait(b.Context(), store.WaitRequest{Lease: l}, nil); err != nil {
						return err
					}
					return s.Release(b.Context(), store.ReleaseRequest{Lease: l})
				})
			})
		}
	}
}

// advisory acquires and releases a session lock of the server.
func advisory(b *testing.B, on *bed, conn *sql.Conn, key int, held func()) error {
	if _, err := conn.ExecContext(b.Context(), fmt.Sprintf(on.take, key)); err != nil {
		return err
	}
	held()
	_, err := conn.ExecContext(b.Context(), fmt.Sprintf(on.give, key))
	return err
}

// BenchmarkHandOff passes one lock between stores that share no connection.
func BenchmarkHandOff(b *testing.B) { benchmark(b, benchmarkHandOff) }

func benchmarkHandOff(b *testing.B, on *bed, schema string) {
	for _, n := range []int{2, 16, 64} {
		round := func(b *testing.B, one func(i int) error) {
			var wg sync.WaitGroup
			b.ResetTimer()
			for i := range n {
				wg.Go(func() {
					for range b.N / n {
						if err := one(i); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "hand-offs/s")
		}
		b.Run(fmt.Sprintf("advisory/%d", n), func(b *testing.B) {
			db := on.handle(b)
			conns := make([]*sql.Conn, n)
			for i := range conns {
				var err error
				if conns[i], err = db.Conn(b.Context()); err != nil {
					b.Fatal(err)
				}
				defer conns[i].Close()
			}
			round(b, func(i int) error { return advisory(b, on, conns[i], 1000, func() {}) })
		})
		for _, class := range []store.Class{store.CrashSafe, store.Efficiency} {
			b.Run(fmt.Sprintf("%v/%d", class, n), func(b *testing.B) { handOn(b, on, schema, n, class) })
		}
	}
}

// handOn passes a lock round that number of stores. With more than two, one of them waits
// at each release.
func handOn(b *testing.B, on *bed, schema string, n int, class store.Class) {
	stores := make([]*store.Store, n)
	for i := range stores {
		stores[i] = on.open(b, schema, sqlstore.Options{})
	}
	name := fmt.Sprint(b.Name(), b.N)
	var holding sync.Mutex
	turn := func(s *store.Store) error {
		l := lease(name)
		l.Require = class
		if _, err := s.Wait(b.Context(), store.WaitRequest{Lease: l}, nil); err != nil {
			return err
		}
		if !holding.TryLock() {
			return fmt.Errorf("two holders")
		}
		holding.Unlock()
		return s.Release(b.Context(), store.ReleaseRequest{Lease: l})
	}
	var left atomic.Int64
	left.Store(int64(b.N))
	var all sync.WaitGroup
	b.ResetTimer()
	for _, s := range stores {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				if err := turn(s); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "hand-offs/s")
}
