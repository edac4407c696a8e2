package goose_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"

	"github.com/pressly/goose/v3"
	_ "modernc.org/sqlite"

	"github.com/leasehold-dev/leasehold"
	adapter "github.com/leasehold-dev/leasehold/adapters/goose"
	"github.com/leasehold-dev/leasehold/internal/testenv/virtual"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

var migrations = fstest.MapFS{
	"1_pets.sql": {Data: []byte("-- +goose Up\nCREATE TABLE pets (name text);\n-- +goose Down\nDROP TABLE pets;\n")},
	"2_rex.sql":  {Data: []byte("-- +goose Up\nINSERT INTO pets VALUES ('Rex');\n-- +goose Down\nDELETE FROM pets;\n")},
}

func database(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// watched is a store that counts leases, and how many overlap.
type watched struct {
	store.Engine
	held, most, all atomic.Int64
}

// Caps implements driver.Engine: without a queue, every attempt is an Acquire.
func (w *watched) Caps() store.Caps {
	c := w.Engine.Caps()
	c.NoQueue = true
	return c
}

func (w *watched) Acquire(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
	g, err := w.Engine.Acquire(ctx, r)
	if err == nil {
		w.all.Add(1)
		w.most.Store(max(w.most.Load(), w.held.Add(1)))
	}
	return g, err
}

func (w *watched) Release(ctx context.Context, r store.ReleaseRequest) error {
	w.held.Add(-1)
	return w.Engine.Release(ctx, r)
}

// Several processes migrate the same database at once, one after the other: each
// migration is applied once.
func TestMigrateAtOnce(t *testing.T) {
	st := &watched{Engine: memstore.New(nil)}
	defer st.Close()
	path := filepath.Join(t.TempDir(), "db")
	var applied atomic.Int64
	var all sync.WaitGroup
	for i := range 4 {
		locker := adapter.New(leasehold.New(store.New(st), nil).Mutex("migrate"))
		option := goose.WithSessionLocker(locker)
		if i%2 == 1 {
			option = goose.WithLocker(locker)
		}
		p, err := goose.NewProvider(goose.DialectSQLite3, database(t, path), migrations, option)
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			results, err := p.Up(t.Context())
			if err != nil {
				t.Error(err)
			}
			applied.Add(int64(len(results)))
		})
	}
	all.Wait()
	if n := applied.Load(); n != 2 {
		t.Errorf("%d migrations were applied, want 2", n)
	}
	// A provider that finds nothing to do takes no lock.
	if st.all.Load() < 1 || st.most.Load() != 1 || st.held.Load() != 0 {
		t.Errorf("%d leases, at most %d at once, %d left; want some, one at a time, and none left", st.all.Load(), st.most.Load(), st.held.Load())
	}
}

// While another process holds the lock, a provider with one try is refused and migrates
// nothing.
func TestLockedByAnother(t *testing.T) {
	st := memstore.New(nil)
	defer st.Close()
	lock := leasehold.New(st, nil).Mutex("migrate")
	other, err := leasehold.New(st, nil).Mutex("migrate").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, database(t, filepath.Join(t.TempDir(), "db")), migrations,
		goose.WithSessionLocker(adapter.New(lock.With(leasehold.LockOptions{Tries: 1}))))
	if err != nil {
		t.Fatal(err)
	}
	if results, err := p.Up(t.Context()); !errors.Is(err, leasehold.ErrBusy) || len(results) > 0 {
		t.Errorf("while the lock is held: %v, %v, want no results and %v", results, err, leasehold.ErrBusy)
	}
	if err := other.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if results, err := p.Up(t.Context()); err != nil || len(results) != 2 {
		t.Errorf("after its release: %v, %v, want two migrations", results, err)
	}
}

// A migration during which the lease was lost is reported.
func TestLossIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := virtual.Clock()
		st := memstore.New(&memstore.Options{Clock: now})
		defer st.Close()
		client := leasehold.New(st, &leasehold.Options{Clock: now})
		l := adapter.New(client.Mutex("migrate"))
		if err := l.Lock(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		state, err := st.Inspect(t.Context(), "migrate")
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Operator().ReleaseOwner(t.Context(), "migrate", state.Holder.Owner); err != nil {
			t.Fatal(err)
		}
		// Another provider of the same database has it now, and keeps it.
		if err := l.Lock(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if err := l.Unlock(t.Context(), nil); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("the loss was reported as %v, want %v", err, leasehold.ErrLost)
		}
		if state, err := st.Inspect(t.Context(), "migrate"); err != nil || !state.Held {
			t.Errorf("after the first unlock the lock is %+v (%v), want it held", state, err)
		}
		if err := l.Unlock(t.Context(), nil); err != nil {
			t.Error(err)
		}
		if err := l.Unlock(t.Context(), nil); err == nil {
			t.Error("the third unlock: no error, want one")
		}
	})
}

func Example() {
	st := memstore.New(nil)
	defer st.Close()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()

	lock := leasehold.New(st, nil).Mutex("migrate/shop")
	p, err := goose.NewProvider(goose.DialectSQLite3, db, migrations, goose.WithSessionLocker(adapter.New(lock)))
	if err != nil {
		fmt.Println(err)
		return
	}
	results, err := p.Up(context.Background())
	fmt.Println(len(results), err)
	// Output: 2 <nil>
}
