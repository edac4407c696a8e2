package sqlstoretest

import (
	"database/sql"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/sqltest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

// benchServer starts a server that keeps what it has committed.
func benchServer(b *testing.B) *sqltest.Server {
	b.Helper()
	if addr := os.Getenv("LEASEHOLD_BENCH_POSTGRESQL"); addr != "" {
		return &sqltest.Server{Addr: addr, User: "tester", Password: "x", Database: "postgres"}
	}
	s, err := sqltest.LaunchPostgreSQL("fsync=on", "full_page_writes=on")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	return s
}

// BenchmarkLock acquires and releases a lock, each goroutine its own.
func BenchmarkLock(b *testing.B) {
	server := benchServer(b)
	schema := newSchema(b, server)
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
			db := database(b, dsn(server))
			db.SetMaxIdleConns(n)
			conns := make([]*sql.Conn, n)
			for i := range conns {
				var err error
				if conns[i], err = db.Conn(b.Context()); err != nil {
					b.Fatal(err)
				}
				defer conns[i].Close()
			}
			each(b, func(i int) error { return advisory(b, conns[i], i, func() {}) })
		})
		for _, class := range []store.Class{store.CrashSafe, store.Efficiency} {
			b.Run(fmt.Sprintf("%v/%d", class, n), func(b *testing.B) {
				s := open(b, dsn(server), schema, sqlstore.Options{})
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

// advisory takes and gives a session lock of the server.
func advisory(b *testing.B, conn *sql.Conn, key int, held func()) error {
	if _, err := conn.ExecContext(b.Context(), "SELECT pg_advisory_lock($1)", int64(key)); err != nil {
		return err
	}
	held()
	_, err := conn.ExecContext(b.Context(), "SELECT pg_advisory_unlock($1)", int64(key))
	return err
}

// BenchmarkHandOff passes one lock around between stores that share no connection.
func BenchmarkHandOff(b *testing.B) {
	server := benchServer(b)
	schema := newSchema(b, server)
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
			db := database(b, dsn(server))
			conns := make([]*sql.Conn, n)
			for i := range conns {
				var err error
				if conns[i], err = db.Conn(b.Context()); err != nil {
					b.Fatal(err)
				}
				defer conns[i].Close()
			}
			round(b, func(i int) error { return advisory(b, conns[i], 1000, func() {}) })
		})
		for _, class := range []store.Class{store.CrashSafe, store.Efficiency} {
			b.Run(fmt.Sprintf("%v/%d", class, n), func(b *testing.B) {
				stores := make([]*sqlstore.Store, n)
				for i := range stores {
					stores[i] = open(b, dsn(server), schema, sqlstore.Options{})
				}
				name := fmt.Sprint(b.Name(), b.N)
				var holding sync.Mutex
				round(b, func(i int) error {
					l := lease(name)
					l.Require = class
					if _, err := stores[i].Wait(b.Context(), store.WaitRequest{Lease: l}, nil); err != nil {
						return err
					}
					if !holding.TryLock() {
						return fmt.Errorf("two holders")
					}
					holding.Unlock()
					return stores[i].Release(b.Context(), store.ReleaseRequest{Lease: l})
				})
			})
		}
	}
}
