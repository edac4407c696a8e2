package sqlstoretest

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

// aLease is a lease whose error the test sets.
type aLease struct {
	store.Lease
	err error
}

func (l aLease) Name() string  { return l.Lease.Name }
func (l aLease) Owner() string { return l.Lease.Owner }
func (l aLease) Err() error    { return l.err }

var _ sqlstore.Lease = (*leasehold.Lease)(nil)

func begin(t *testing.T, db *sql.DB, level sql.IsolationLevel) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: level})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tx.Rollback() })
	return tx
}

var levels = []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable}

// While a transaction holds a lease, the lock is granted to no other owner, even after the end of the
// TTL. The lease can be renewed, and calls of others end at their own deadlines.
func TestHoldKeepsTheLock(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		for _, level := range levels {
			t.Run(level.String(), func(t *testing.T) {
				t.Parallel()
				s, _ := on.newStore(t)
				db := on.handle(t)
				l := lease("x")
				l.TTL = 2 * time.Second // it ends while the transaction holds it
				mustAcquire(t, s, l)
				tx := begin(t, db, level)
				if err := sqlstore.Hold(t.Context(), s, tx, aLease{Lease: l}); err != nil {
					t.Fatal(err)
				}
				if err := s.Renew(t.Context(), []store.Lease{l})[0]; err != nil {
					t.Errorf("renew while a transaction holds the lease: %v", err)
				}
				if err := sqlstore.Hold(t.Context(), s, tx, aLease{Lease: l}); err != nil && level == sql.LevelReadCommitted {
					t.Errorf("hold again: %v", err)
				}
				tx.Rollback()
				tx = begin(t, db, level)
				if err := sqlstore.Hold(t.Context(), s, tx, aLease{Lease: l}); err != nil {
					t.Fatal(err)
				}
				// Even the owner cannot hand the lock on before the transaction ends.
				brief, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				defer cancel()
				if err := s.Release(brief, store.ReleaseRequest{Lease: l}); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("release while a transaction holds the lease: %v, want the end of its context", err)
				}
				ctx, stop := context.WithTimeout(t.Context(), 200*time.Millisecond)
				defer stop()
				if _, err := s.Acquire(ctx, store.AcquireRequest{Lease: lease("x")}); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("acquire while a transaction holds the lease: %v, want the end of its context", err)
				}
				w := wait(t, s, lease("x"))
				select {
				case <-w.done:
					t.Errorf("a waiter is granted a lock that a transaction holds: %v", w.err)
				case <-time.After(100 * time.Millisecond): // a grant would take about a millisecond
				}
				if err := tx.Commit(); err != nil {
					t.Fatal(err)
				}
				w.granted(t)
			})
		}
	})
}

// While a hand-off is in progress, Hold waits, and then fails: it does not rely on rows that are
// about to change.
func TestHoldSeesAHandOff(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		for _, level := range levels {
			t.Run(level.String(), func(t *testing.T) {
				t.Parallel()
				s, schema := on.newStore(t)
				db := on.handle(t)
				l := lease("x")
				mustAcquire(t, s, l)
				handing, err := db.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				defer handing.Rollback()
				if _, err := handing.ExecContext(t.Context(), on.in(schema, `UPDATE S.records SET holder = 'next', version = version + 1 WHERE k = ?`), recordstore.Key("x")); err != nil {
					t.Fatal(err)
				}
				tx := begin(t, db, level)
				result := make(chan error, 1)
				go func() { result <- sqlstore.Hold(context.WithoutCancel(t.Context()), s, tx, aLease{Lease: l}) }()
				eventually.True(t, "hold waits", func() bool {
					return on.waitForRows(t, db, schema) == 1 || len(result) == 1
				})
				if err := handing.Commit(); err != nil {
					t.Fatal(err)
				}
				if err := <-result; err == nil {
					t.Error("hold by an owner whose lock was handed on succeeds, want an error")
				} else if level == sql.LevelReadCommitted && !errors.Is(err, store.ErrNotHeld) {
					t.Errorf("hold by an owner whose lock was handed on: %v, want %v", err, store.ErrNotHeld)
				}
			})
		}
	})
}

// A transaction whose lease is over fails, so that it cannot be committed.
func TestHoldFailsTheTransaction(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		t.Parallel()
		s, schema := on.newStore(t)
		db := on.handle(t)
		on.exec(t, db, schema, `CREATE TABLE S.written (n int)`)
		for name, l := range map[string]aLease{
			"never held":      {Lease: lease("x")},
			"over in process": {Lease: lease("x"), err: errors.New("released")},
		} {
			tx := begin(t, db, sql.LevelDefault)
			if err := sqlstore.Hold(t.Context(), s, tx, l); !errors.Is(err, store.ErrNotHeld) {
				t.Errorf("%s: hold: %v, want an error that matches store.ErrNotHeld", name, err)
			}
			if l.err != nil {
				continue
			}
			if on != postgres { // MySQL leaves it to the caller
				continue
			}
			if _, err := tx.ExecContext(t.Context(), on.in(schema, `INSERT INTO S.written VALUES (1)`)); err == nil {
				t.Errorf("%s: the transaction executes a further statement, want it to fail", name)
			}
			tx.Commit()
		}
		if n := on.number(t, db, schema, `SELECT count(*) FROM S.written`); n != 0 {
			t.Errorf("%d rows were written without a lease, want none", n)
		}
	})
}

// Hold refuses what is in no transaction, however it is wrapped: the rows would be free at once.
func TestHoldNeedsATransaction(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		t.Parallel()
		s, _ := on.newStore(t)
		l := lease("x")
		mustAcquire(t, s, l)
		db := on.handle(t)
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for what, tx := range map[string]sqlstore.Tx{"a handle": db, "a wrapped handle": struct{ *sql.DB }{db}, "a connection": conn} {
			if err := sqlstore.Hold(t.Context(), s, tx, aLease{Lease: l}); !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), "transaction") {
				t.Errorf("hold with %s in place of a transaction: %v, want an error that matches store.ErrInvalid", what, err)
			}
		}
	})
}

// Hold does not rely on what its transaction has read before: a lease that has ended since then, in
// whatever way, is not held, and one that was renewed is.
func TestHoldAfterASnapshot(t *testing.T) {
	endings := map[string]func(t *testing.T, s *store.Store, l store.Lease, g store.Grant){
		"released": func(t *testing.T, s *store.Store, l store.Lease, _ store.Grant) { mustRelease(t, s, l) },
		"released and acquired": func(t *testing.T, s *store.Store, l store.Lease, _ store.Grant) {
			mustRelease(t, s, l)
			mustAcquire(t, s, lease("x"))
		},
		"handed on": func(t *testing.T, s *store.Store, l store.Lease, _ store.Grant) {
			w := wait(t, s, lease("x"))
			eventually.True(t, "the waiter has its place", func() bool { return len(inspect(t, s, "x").Queue) == 1 })
			mustRelease(t, s, l)
			w.granted(t)
		},
		"broken": func(t *testing.T, s *store.Store, l store.Lease, g store.Grant) {
			if _, err := s.BreakLease(t.Context(), store.BreakRequest{Name: "x", Owner: l.Owner, Token: g.Token, Now: true}); err != nil {
				t.Fatal(err)
			}
			mustAcquire(t, s, lease("x"))
		},
		"resized": func(t *testing.T, s *store.Store, _ store.Lease, _ store.Grant) {
			if err := s.Resize(t.Context(), "x", store.Semaphore(1), store.Semaphore(3)); err != nil {
				t.Fatal(err)
			}
			mustAcquire(t, s, leaseOf(store.Semaphore(3), 1, "x"))
		},
		"renewed": func(t *testing.T, s *store.Store, l store.Lease, _ store.Grant) {
			if err := s.Renew(t.Context(), []store.Lease{l})[0]; err != nil {
				t.Fatal(err)
			}
		},
	}
	everywhere(t, func(t *testing.T, on *bed) {
		for _, level := range levels {
			for how, end := range endings {
				t.Run(level.String()+"/"+how, func(t *testing.T) {
					t.Parallel()
					s, schema := on.newStore(t)
					db := on.handle(t)
					l := lease("x")
					g := mustAcquire(t, s, l)
					on.exec(t, db, schema, `CREATE TABLE S.data (n int)`)
					tx := begin(t, db, level)
					var n int
					if err := tx.QueryRowContext(t.Context(), on.in(schema, `SELECT count(*) FROM S.data`)).Scan(&n); err != nil {
						t.Fatal(err)
					}
					end(t, s, l, g)
					switch err := sqlstore.Hold(t.Context(), s, tx, aLease{Lease: l}); {
					case how == "renewed" && err != nil:
						t.Errorf("hold a lease that was renewed: %v", err)
					case how != "renewed" && err == nil:
						t.Error("hold a lease that is over succeeds, want an error")
					}
				})
			}
		}
	})
}

// The next goroutine of a client has the lock only when the transaction that holds the lease of
// the last one is over.
func TestHoldExcludesTheNextGoroutine(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		s, _ := on.newStore(t)
		db := on.handle(t)
		lock := leasehold.New(s, nil).Mutex("x")
		former, err := lock.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		tx := begin(t, db, sql.LevelReadCommitted)
		if err := sqlstore.Hold(t.Context(), s, tx, former); err != nil {
			t.Fatal(err)
		}
		var next *leasehold.Lease
		var once sync.Once
		waits := make(chan struct{})
		waiting := lock.With(leasehold.LockOptions{OnWait: func(error) { once.Do(func() { close(waits) }) }})
		got := make(chan error, 1)
		go func() {
			var err error
			next, err = waiting.Acquire(t.Context())
			got <- err
		}()
		<-waits
		released := make(chan error, 1)
		go func() { released <- former.Release(t.Context()) }()
		select {
		case err := <-got:
			t.Fatalf("the next goroutine has the lock (%v) while a transaction holds it", err)
		case <-time.After(200 * time.Millisecond): // to pass the lease on would take a microsecond
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(<-released, <-got); err != nil {
			t.Fatal(err)
		}
		tx = begin(t, db, sql.LevelReadCommitted)
		if err := sqlstore.Hold(t.Context(), s, tx, next); err != nil {
			t.Errorf("the next holder's transaction: %v", err)
		}
		tx.Rollback()
		if err := next.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
