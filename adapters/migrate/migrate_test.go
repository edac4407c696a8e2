package migrate_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	lib "github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	"github.com/golang-migrate/migrate/v4/database/stub"
	suite "github.com/golang-migrate/migrate/v4/database/testing"
	"github.com/golang-migrate/migrate/v4/source/iofs"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/adapters/migrate"
	"github.com/leasehold-dev/leasehold/internal/testenv/virtual"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

// sessions is a database whose own lock must not be used.
type sessions struct {
	database.Driver
	t   *testing.T
	run func()
}

func (s *sessions) Lock() error {
	s.t.Error("the database's own lock was taken, want it unused")
	return nil
}
func (s *sessions) Unlock() error {
	s.t.Error("the database's own lock was released, want it unused")
	return nil
}

func (s *sessions) Run(r io.Reader) error {
	if s.run != nil {
		s.run()
	}
	return s.Driver.Run(r)
}

func newDatabase(t *testing.T) *sessions {
	t.Helper()
	d, err := (&stub.Stub{}).Open("stub://")
	if err != nil {
		t.Fatal(err)
	}
	return &sessions{Driver: d, t: t}
}

// A wrapped driver passes the library's suite for drivers.
func TestSuiteOfTheLibrary(t *testing.T) {
	st := memstore.New(nil)
	defer st.Close()
	suite.Test(t, migrate.Wrap(newDatabase(t), leasehold.New(st, nil).Mutex("a"), 0), []byte("/* foobar migration */"))
}

var steps = fstest.MapFS{
	"1_pets.up.sql":   {Data: []byte("CREATE TABLE pets (name text)")},
	"1_pets.down.sql": {Data: []byte("DROP TABLE pets")},
	"2_rex.up.sql":    {Data: []byte("INSERT INTO pets VALUES ('Rex')")},
	"2_rex.down.sql":  {Data: []byte("DELETE FROM pets")},
}

func newMigrate(t *testing.T, d database.Driver) *lib.Migrate {
	t.Helper()
	source, err := iofs.New(steps, ".")
	if err != nil {
		t.Fatal(err)
	}
	m, err := lib.NewWithInstance("iofs", source, "stub", d)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// While one Migrate migrates, another is refused. Then it finds nothing to do.
func TestLockedByAnother(t *testing.T) {
	st := memstore.New(nil)
	defer st.Close()
	d := newDatabase(t)
	other := newMigrate(t, migrate.Wrap(d, leasehold.New(st, nil).Mutex("a"), 0))
	refused := 0
	first := *d
	first.run = func() {
		refused++
		if err := other.Up(); !errors.Is(err, database.ErrLocked) || !errors.Is(err, leasehold.ErrBusy) {
			t.Errorf("during a migration another one ends with %v, want %v and %v", err, database.ErrLocked, leasehold.ErrBusy)
		}
	}
	if err := newMigrate(t, migrate.Wrap(&first, leasehold.New(st, nil).Mutex("a"), time.Second)).Up(); err != nil {
		t.Error(err)
	}
	if refused != 2 {
		t.Errorf("%d steps were run, want 2", refused)
	}
	if err := other.Up(); !errors.Is(err, lib.ErrNoChange) {
		t.Errorf("afterwards: %v, want %v", err, lib.ErrNoChange)
	}
}

// When the lease is lost during a step, no other step is run, and the database is marked dirty.
func TestLossStopsTheMigration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := virtual.Clock()
		st := memstore.New(&memstore.Options{Clock: now})
		defer st.Close()
		d := newDatabase(t)
		d.run = func() { time.Sleep(2 * time.Minute) }
		lock := leasehold.New(st, &leasehold.Options{Clock: now}).Mutex("a").With(leasehold.LockOptions{MaxHold: time.Minute})
		wrapped := migrate.Wrap(d, lock, 0)
		if err := newMigrate(t, wrapped).Steps(1); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("the migration ends with %v, want %v", err, leasehold.ErrLost)
		}
		version, dirty, err := d.Version()
		if version != 1 || !dirty || err != nil {
			t.Errorf("version %d, dirty %v, %v; want 1 and dirty", version, dirty, err)
		}

		if err := wrapped.Lock(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		for what, err := range map[string]error{
			"a step": wrapped.Run(bytes.NewReader([]byte("another"))), "the version": wrapped.SetVersion(2, false), "a drop": wrapped.Drop(), "the unlock": wrapped.Unlock(),
		} {
			if !errors.Is(err, leasehold.ErrLost) {
				t.Errorf("after the loss, %s: %v, want %v", what, err, leasehold.ErrLost)
			}
		}
		if ran := d.Driver.(*stub.Stub).MigrationSequence; len(ran) != 1 {
			t.Errorf("steps %q were run, want one", ran)
		}
	})
}

// A driver opened from a wrapped one has the same lock.
func TestOpen(t *testing.T) {
	st := memstore.New(nil)
	defer st.Close()
	one := migrate.Wrap(newDatabase(t), leasehold.New(st, nil).Mutex("a"), 0)
	two, err := one.Open("stub://")
	if err != nil {
		t.Fatal(err)
	}
	if err := one.Lock(); err != nil {
		t.Fatal(err)
	}
	if err := two.Lock(); !errors.Is(err, database.ErrLocked) {
		t.Errorf("locking the second: %v, want %v", err, database.ErrLocked)
	}
	if err := one.Run(bytes.NewReader(nil)); err != nil {
		t.Error(err)
	}
	if err := one.Unlock(); err != nil {
		t.Error(err)
	}
	if err := two.Unlock(); !errors.Is(err, database.ErrNotLocked) {
		t.Errorf("unlocking the second, which is not locked: %v, want %v", err, database.ErrNotLocked)
	}
}

// closing counts how often a database is closed.
type closing struct {
	database.Driver
	closed int
}

func (c *closing) Close() error { c.closed++; return nil }

// Closing a driver that is locked releases the lock, as a driver does whose lock is a
// session's: a Migrate whose LockTimeout has passed does not unlock.
func TestCloseReleases(t *testing.T) {
	st := memstore.New(nil)
	defer st.Close()
	inner := &closing{Driver: newDatabase(t)}
	d := migrate.Wrap(inner, leasehold.New(st, nil).Mutex("a"), 0)
	if err := d.Lock(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	if state, err := st.Inspect(t.Context(), "a"); err != nil || state.Held {
		t.Errorf("after Close the lock is %+v (%v), want it free", state, err)
	}
	if inner.closed != 2 {
		t.Errorf("the database was closed %d times, want 2", inner.closed)
	}
	if err := d.Lock(); err == nil {
		t.Error("Lock after Close: no error, want one: nothing would release the lock")
	}
}

func ExampleWrap() {
	st := memstore.New(nil)
	defer st.Close()

	source, err := iofs.New(steps, ".")
	if err != nil {
		fmt.Println(err)
		return
	}
	db, err := (&stub.Stub{}).Open("stub://") // or postgres.WithInstance, and so on
	if err != nil {
		fmt.Println(err)
		return
	}
	lock := leasehold.New(st, nil).Mutex("migrate/shop").With(leasehold.LockOptions{TTL: 10 * time.Second})
	m, err := lib.NewWithInstance("iofs", source, "stub", migrate.Wrap(db, lock, 12*time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Up())
	fmt.Println(m.Version())
	// Output:
	// <nil>
	// 2 false <nil>
}
