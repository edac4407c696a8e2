package migrate_test

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

	lib "github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	"github.com/golang-migrate/migrate/v4/database/sqlite"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"go.uber.org/goleak"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/adapters/migrate"
	"github.com/leasehold-dev/leasehold/internal/testenv/adaptertest"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/internal/testenv/virtual"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// With these set, the test binary migrates a database until it is killed.
const (
	redisVar    = "LEASEHOLD_MIGRATE_REDIS"
	databaseVar = "LEASEHOLD_MIGRATE_DATABASE"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(redisVar); url != "" {
		err := onSQLite(url, os.Getenv(databaseVar), func() {
			fmt.Println("half done")
			io.Copy(io.Discard, os.Stdin) // until it is killed
		}, (*lib.Migrate).Up)
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// slow is a database of which each step calls a function before it ends.
type slow struct {
	database.Driver
	then func()
}

func (s slow) Run(r io.Reader) error {
	err := s.Driver.Run(r)
	s.then()
	return err
}

// onSQLite calls work with a Migrate of a database in a file, each step of which calls then.
func onSQLite(url, path string, then func(), work func(*lib.Migrate) error) error {
	st, err := redisstore.Open(context.Background(), url, adaptertest.Patient())
	if err != nil {
		return err
	}
	defer st.Close()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	inner, err := sqlite.WithInstance(db, &sqlite.Config{})
	if err != nil {
		return errors.Join(err, db.Close())
	}
	lock := leasehold.New(st, nil).Mutex("migrate").With(leasehold.LockOptions{TTL: 10 * time.Second})
	d := migrate.Wrap(slow{inner, then}, lock, time.Minute)
	source, err := iofs.New(steps, ".")
	if err != nil {
		return errors.Join(err, d.Close())
	}
	m, err := lib.NewWithInstance("iofs", source, "sqlite", d)
	if err != nil {
		return errors.Join(err, d.Close())
	}
	defer m.Close()
	m.LockTimeout = 2 * time.Minute
	return work(m)
}

// When a process is killed in the midst of a step, the next one waits until the TTL of the
// lease is over, and finds the database dirty, as without a lease. It goes on after its
// version was forced.
func TestKilledInAMigration(t *testing.T) {
	t.Parallel() // it waits for the TTL
	url, path := "redis://"+redistest.Start(t).Addr(), filepath.Join(t.TempDir(), "db")
	first := adaptertest.Again(t, redisVar+"="+url, databaseVar+"="+path)
	first.Wants(t, "half done")
	adaptertest.Held(t, url, "migrate")
	first.Kill()
	err := onSQLite(url, path, func() {}, func(m *lib.Migrate) error {
		var dirty lib.ErrDirty
		if err := m.Up(); !errors.As(err, &dirty) || dirty.Version != 1 {
			t.Errorf("the next one: %v, want an error that version 1 is dirty", err)
		}
		if err := m.Force(1); err != nil {
			t.Error(err)
		}
		if err := m.Up(); err != nil {
			t.Errorf("after the version was forced: %v, want no error", err)
		}
		if version, dirty, err := m.Version(); version != 2 || dirty || err != nil {
			t.Errorf("version %d, dirty %v (%v), want 2", version, dirty, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// If the store cannot be reached during a migration, the steps that end before the lease does are
// recorded. The error names the store, and Migrate regards itself as locked from then
// on. Another one goes on when the TTL is over.
func TestStoreGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := virtual.Clock()
		far := adaptertest.NewCut(t, now)
		lock := leasehold.New(far.Store, &leasehold.Options{Clock: now}).Mutex("a").With(leasehold.LockOptions{TTL: 10 * time.Second})
		d := newDatabase(t)
		d.run = func() { far.Down.Store(true) }
		m := newMigrate(t, migrate.Wrap(d, lock, 12*time.Second))
		if err := m.Steps(1); !errors.Is(err, adaptertest.ErrDown) {
			t.Errorf("the migration ends with %v, want %v", err, adaptertest.ErrDown)
		}
		if version, dirty, err := d.Version(); version != 1 || dirty || err != nil {
			t.Errorf("version %d, dirty %v (%v); want 1", version, dirty, err)
		}
		if err := newMigrate(t, migrate.Wrap(d, lock, 12*time.Second)).Up(); !errors.Is(err, adaptertest.ErrDown) {
			t.Errorf("without a store, another one ends with %v, want %v", err, adaptertest.ErrDown)
		}
		far.Down.Store(false)
		d.run = nil
		if err := m.Up(); !errors.Is(err, lib.ErrLocked) {
			t.Errorf("after an unlock that failed: %v, want %v", err, lib.ErrLocked)
		}
		if err := newMigrate(t, migrate.Wrap(d, lock, 12*time.Second)).Up(); err != nil {
			t.Errorf("another one ends with %v, want no error", err)
		}
		if version, dirty, err := d.Version(); version != 2 || dirty || err != nil {
			t.Errorf("version %d, dirty %v (%v); want 2", version, dirty, err)
		}
	})
}
