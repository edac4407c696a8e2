package goose_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pressly/goose/v3"
	"go.uber.org/goleak"

	"github.com/leasehold-dev/leasehold"
	adapter "github.com/leasehold-dev/leasehold/adapters/goose"
	"github.com/leasehold-dev/leasehold/internal/testenv/adaptertest"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/internal/testenv/virtual"
	"github.com/leasehold-dev/leasehold/store/memstore"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// With these set, the test binary migrates a database until it is killed.
const (
	redisVar    = "LEASEHOLD_GOOSE_REDIS"
	databaseVar = "LEASEHOLD_GOOSE_DATABASE"
	bareVar     = "LEASEHOLD_GOOSE_WITHOUT_TRANSACTION"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(redisVar); url != "" {
		_, err := migrate(url, os.Getenv(databaseVar), os.Getenv(bareVar) != "", func() {
			fmt.Println("half done")
			io.Copy(io.Discard, os.Stdin) // until it is killed
		})
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// migrate makes a table, and a row in a second migration, which calls then before it ends. It
// returns how many migrations it applied.
func migrate(url, path string, bare bool, then func()) (int, error) {
	st, err := redisstore.Open(context.Background(), url, adaptertest.Patient())
	if err != nil {
		return 0, err
	}
	defer st.Close()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	const insert = "INSERT INTO pets VALUES ('Rex')"
	second := &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, insert)
		then()
		return err
	}}
	if bare {
		second = &goose.GoFunc{RunDB: func(ctx context.Context, db *sql.DB) error {
			_, err := db.ExecContext(ctx, insert)
			then()
			return err
		}}
	}
	first := &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "CREATE TABLE pets (name text)")
		return err
	}}
	lock := leasehold.New(st, nil).Mutex("migrate").With(leasehold.LockOptions{TTL: 10 * time.Second})
	p, err := goose.NewProvider(goose.DialectSQLite3, db, nil, goose.WithSessionLocker(adapter.New(lock)),
		goose.WithGoMigrations(goose.NewGoMigration(1, first, nil), goose.NewGoMigration(2, second, nil)))
	if err != nil {
		return 0, err
	}
	results, err := p.Up(context.Background())
	return len(results), err
}

// When a process is killed in the midst of a migration, the next one waits until the TTL
// of the lease is over, and runs that migration again. What the first one had done within
// a transaction is rolled back; without one it stays, and is done twice.
func TestKilledInAMigration(t *testing.T) {
	for _, c := range []struct {
		name, bare string
		rows       int
	}{
		{"transaction", "", 1},
		{"without a transaction", "yes", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // it waits for the TTL
			url, path := "redis://"+redistest.Start(t).Addr(), filepath.Join(t.TempDir(), "db")
			first := adaptertest.Again(t, redisVar+"="+url, databaseVar+"="+path, bareVar+"="+c.bare)
			first.Wants(t, "half done")
			adaptertest.Held(t, url, "migrate")
			first.Kill()
			killed := time.Now()
			n, err := migrate(url, path, c.bare != "", func() {})
			t.Logf("the next one is done after %v", time.Since(killed))
			if n != 1 || err != nil {
				t.Errorf("%d migrations were applied (%v), want the second", n, err)
			}
			var rows int
			if err := database(t, path).QueryRowContext(t.Context(), "SELECT count(*) FROM pets").Scan(&rows); rows != c.rows || err != nil {
				t.Errorf("%d rows (%v), want %d", rows, err, c.rows)
			}
		})
	}
}

// A context that ends, while a provider waits or while it migrates, leaves no lock behind.
func TestCanceled(t *testing.T) {
	st := memstore.New(nil)
	defer st.Close()
	free := func(when string) {
		t.Helper()
		if state, err := st.Inspect(t.Context(), "migrate"); err != nil || state.Held || len(state.Queue) > 0 {
			t.Errorf("%s the lock is %+v (%v), want it free and without waiters", when, state, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	during := goose.NewGoMigration(1, &goose.GoFunc{RunTx: func(ctx context.Context, _ *sql.Tx) error {
		cancel()
		return ctx.Err()
	}}, nil)
	p, err := goose.NewProvider(goose.DialectSQLite3, database(t, filepath.Join(t.TempDir(), "db")), nil,
		goose.WithSessionLocker(adapter.New(leasehold.New(st, nil).Mutex("migrate"))), goose.WithGoMigrations(during))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Up(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled in a migration: %v, want %v", err, context.Canceled)
	}
	free("after a migration that was canceled")

	other, err := leasehold.New(st, nil).Mutex("migrate").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	waiting, stop := context.WithCancel(t.Context())
	locker := adapter.New(leasehold.New(st, nil).Mutex("migrate").With(leasehold.LockOptions{OnWait: func(error) { stop() }}))
	if err := locker.SessionLock(waiting, nil); !errors.Is(err, context.Canceled) || !errors.Is(err, leasehold.ErrBusy) {
		t.Errorf("canceled in a wait: %v, want %v and %v", err, context.Canceled, leasehold.ErrBusy)
	}
	if err := other.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	free("after a wait that was canceled")
}

// If the store cannot be reached during a migration, the unlock returns that error, or the
// loss of the lease. The lock is free when the TTL is over.
func TestStoreGoesAway(t *testing.T) {
	for _, c := range []struct {
		name string
		away time.Duration
		want error
	}{
		{"for a moment", time.Second, adaptertest.ErrDown},
		{"for longer than the lease lasts", time.Minute, leasehold.ErrLost},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				now := virtual.Clock()
				far := adaptertest.NewCut(t, now)
				l := adapter.New(leasehold.New(far.Store, &leasehold.Options{Clock: now}).Mutex("migrate"))
				if err := l.Lock(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
				far.Down.Store(true)
				if err := adapter.New(leasehold.New(far.Store, &leasehold.Options{Clock: now}).Mutex("migrate")).Lock(t.Context(), nil); !errors.Is(err, adaptertest.ErrDown) {
					t.Errorf("locked without a store: %v, want %v", err, adaptertest.ErrDown)
				}
				time.Sleep(c.away)
				if err := l.Unlock(t.Context(), nil); !errors.Is(err, c.want) {
					t.Errorf("the unlock: %v, want %v", err, c.want)
				}
				far.Down.Store(false)
				if err := l.Lock(t.Context(), nil); err != nil { // after the TTL at the latest
					t.Fatal(err)
				}
				if err := l.Unlock(t.Context(), nil); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
