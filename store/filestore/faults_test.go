package filestore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"modernc.org/sqlite"

	"github.com/leasehold-dev/leasehold/store"
)

// faulty is a database handle whose commits the test can replace.
type faulty struct {
	driver.Connector
	// commit, if set, is called in place of a commit, which it is passed.
	commit atomic.Pointer[func(commit func() error) error]
	begun  atomic.Int64 // transactions
}

func (f *faulty) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := f.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &faultyConn{c.(sqliteConn), f}, nil
}

// onCommit makes the handle call fn in place of the next commit, and of no later one.
func (f *faulty) onCommit(fn func(commit func() error) error) {
	once := func(commit func() error) error {
		f.commit.Store(nil)
		return fn(commit)
	}
	f.commit.Store(&once)
}

// sqliteConn has the methods of a connection that database/sql uses.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

type faultyConn struct {
	sqliteConn
	f *faulty
}

func (c *faultyConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	tx, err := c.sqliteConn.BeginTx(ctx, o)
	if err != nil {
		return nil, err
	}
	c.f.begun.Add(1)
	return &faultyTx{tx, c.f}, nil
}

type faultyTx struct {
	driver.Tx
	f *faulty
}

func (tx *faultyTx) Commit() error {
	fn := tx.f.commit.Load()
	if fn == nil {
		return tx.Tx.Commit()
	}
	made := false
	err := (*fn)(func() error {
		made = true
		return tx.Tx.Commit()
	})
	if !made {
		err = errors.Join(err, tx.Tx.Rollback())
	}
	return err
}

// openFaulty opens a store on a faulty handle, and another, sound one.
func openFaulty(t *testing.T, o *Options, d Dialect) (f *faulty, s, sound *Store) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "locks.db")
	sound = mustOpen(t, path, nil)
	c, err := sqlite.NewConnector(dsn(path))
	if err != nil {
		t.Fatal(err)
	}
	f = &faulty{Connector: c}
	db := sql.OpenDB(f)
	t.Cleanup(func() { db.Close() })
	if s, err = New(t.Context(), db, d, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return f, s, sound
}

var errCut = errors.New("the connection broke")

func TestAcquireWithUnknownOutcome(t *testing.T) {
	for what, fault := range map[string]func(commit func() error) error{
		"committed, but the answer was lost": func(commit func() error) error {
			return errors.Join(errCut, commit())
		},
		"not committed": func(func() error) error { return errCut },
	} {
		t.Run(what, func(t *testing.T) {
			f, s, sound := openFaulty(t, nil, SQLite())
			f.onCommit(fault)
			r := request("a")
			_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r})
			if !errors.Is(err, store.ErrAmbiguous) || !errors.Is(err, errCut) {
				t.Fatalf("got %v, want an ambiguous error with its reason", err)
			}
			said(t, err, "acquire", `"a"`, "sqlite")
			next := request("a")
			poll(t, "nothing is left of the attempt", func() bool {
				_, err := sound.Acquire(t.Context(), store.AcquireRequest{Lease: next})
				return err == nil
			})
			mustRelease(t, sound, next)
			if list, err := sound.List(t.Context(), ""); err != nil || len(list) != 0 {
				t.Fatalf("list: %+v, %v, want no locks", list, err)
			}
		})
	}
}

// An acquire that was undone before it took effect does not take effect later.
func TestAcquireUndoneEarly(t *testing.T) {
	f, s, sound := openFaulty(t, nil, SQLite())
	f.onCommit(func(func() error) error { return errCut })
	r := request("a")
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r}); !errors.Is(err, errCut) {
		t.Fatalf("%v, want %v", err, errCut)
	}
	if err := s.Close(); err != nil { // which waits for the clean-up
		t.Fatal(err)
	}
	if _, err := sound.Acquire(t.Context(), store.AcquireRequest{Lease: r}); !errors.Is(err, store.ErrNotHeld) {
		t.Fatalf("the attempt that was undone arrives late: %v, want %v", err, store.ErrNotHeld)
	}
	mustAcquire(t, sound, request("a"))
}

func TestAcquireCancelledInTheCommit(t *testing.T) {
	f, s, sound := openFaulty(t, nil, SQLite())
	ctx, cancel := context.WithCancel(t.Context())
	f.onCommit(func(commit func() error) error {
		err := commit()
		cancel()
		return errors.Join(context.Canceled, err)
	})
	r := request("a")
	_, err := s.Acquire(ctx, store.AcquireRequest{Lease: r})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want context.Canceled", err)
	}
	poll(t, "nothing is left of the attempt", func() bool {
		st, err := sound.Inspect(t.Context(), "a")
		return err == nil && !st.Held
	})
}

// An attempt of unknown outcome leaves alone the lease that another attempt of its owner
// has, and refuses no later attempt of that owner.
func TestUnknownOutcomeSparesTheOwnersLease(t *testing.T) {
	for what, committed := range map[string]bool{"committed": true, "not committed": false} {
		t.Run(what, func(t *testing.T) {
			f, s, sound := openFaulty(t, nil, SQLite())
			attempt := func() store.Lease {
				r := request("a")
				r.Owner, r.Attempt = "deploy", store.NewOwner()
				return r
			}
			held := attempt()
			mustAcquire(t, sound, held)
			f.onCommit(func(commit func() error) error {
				if committed {
					return errors.Join(errCut, commit())
				}
				return errCut
			})
			if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: attempt()}); !errors.Is(err, errCut) {
				t.Fatalf("%v, want %v", err, errCut)
			}
			if err := s.Close(); err != nil { // which waits for the clean-up
				t.Fatal(err)
			}
			if st, err := sound.Inspect(t.Context(), "a"); err != nil || st.Holder.Owner != "deploy" {
				t.Fatalf("inspect after the clean-up: %+v, %v, want the lease of the other attempt", st, err)
			}
			mustRelease(t, sound, held)
			mustAcquire(t, sound, attempt())
		})
	}
}

// Close waits for clean-up that is still in progress.
func TestCloseWaitsForCleanUp(t *testing.T) {
	f, s, sound := openFaulty(t, nil, SQLite())
	f.onCommit(func(commit func() error) error {
		err := commit()
		f.onCommit(func(commit func() error) error { // of the clean-up
			time.Sleep(50 * time.Millisecond)
			return commit()
		})
		return errors.Join(errCut, err)
	})
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("a")}); !errors.Is(err, errCut) {
		t.Fatalf("%v, want %v", err, errCut)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	mustAcquire(t, sound, request("a"))
}

func TestRenewAndReleaseWithUnknownOutcome(t *testing.T) {
	f, s, sound := openFaulty(t, nil, SQLite())
	r, gone := request("a"), request("b")
	mustAcquire(t, s, r)
	lost := func(commit func() error) error { return errors.Join(errCut, commit()) }

	f.onCommit(lost)
	for i, err := range s.Renew(t.Context(), []store.Lease{r, gone}) {
		if !errors.Is(err, store.ErrAmbiguous) || errors.Is(err, store.ErrNotHeld) {
			t.Errorf("lease %d: got %v, want an ambiguous error, as the outcome is unknown", i, err)
		}
	}
	if st, err := sound.Inspect(t.Context(), "a"); err != nil || st.Holder.Owner != r.Owner {
		t.Fatalf("inspect: %+v, %v, want the holder %s", st, err, r.Owner)
	}

	f.onCommit(lost)
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r}); !errors.Is(err, store.ErrAmbiguous) {
		t.Fatalf("got %v, want an ambiguous error", err)
	}
	// Calling again is safe, and shows the outcome.
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r}); !errors.Is(err, store.ErrNotHeld) {
		t.Fatalf("release again: %v, want %v", err, store.ErrNotHeld)
	}
}

// A commit that fails because the file is busy is repeated, with the same result.
func TestBusyCommit(t *testing.T) {
	errBusy := errors.New("another process is writing")
	d := SQLite()
	again := d.again
	d.again = func(err error) bool { return errors.Is(err, errBusy) || again(err) }
	f, s, _ := openFaulty(t, nil, d)
	for range 3 {
		fails := 5
		var refuse func(func() error) error
		refuse = func(commit func() error) error {
			if fails--; fails > 0 {
				f.onCommit(refuse)
			}
			return errBusy
		}
		r := request("a")
		f.onCommit(refuse)
		mustAcquire(t, s, r)
		if fails != 0 {
			t.Fatalf("%d refusals were not made, want 0", fails)
		}
		fails = 5
		f.onCommit(refuse)
		if errs := s.Renew(t.Context(), []store.Lease{request("b"), r}); !errors.Is(errs[0], store.ErrNotHeld) || errs[1] != nil {
			t.Fatalf("renew: %v, want %v only for the first", errs, store.ErrNotHeld)
		}
		fails = 5
		f.onCommit(refuse)
		mustRelease(t, s, r)
	}
}

// block keeps the file busy, as another process would, until stop is called.
func block(t *testing.T, s *Store) (stop func()) {
	t.Helper()
	tx, err := s.db.BeginTx(context.WithoutCancel(t.Context()), nil)
	if err != nil {
		t.Fatal(err)
	}
	return func() { _ = tx.Rollback() }
}

func TestBusyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	other := mustOpen(t, path, nil)
	hasty, patient := mustOpen(t, path, nil), mustOpen(t, path, nil)
	hasty.limit = 50 * time.Millisecond // not by Options: opening may take its time
	r := request("a")
	mustAcquire(t, patient, r)
	stop := block(t, other)
	defer stop()

	// The store's own limit.
	_, err := hasty.Acquire(t.Context(), store.AcquireRequest{Lease: request("b")})
	var quorum *store.QuorumError
	if !errors.As(err, &quorum) || !quorum.Transient() {
		t.Errorf("got %v, want a transient *store.QuorumError", err)
	}
	said(t, err, "acquire", `"b"`, path, "50ms", "busy")
	if errs := hasty.Renew(t.Context(), []store.Lease{r}); !errors.Is(errs[0], store.ErrQuorum) || errors.Is(errs[0], store.ErrNotHeld) {
		t.Errorf("renew: %v, want %v, and not %v", errs[0], store.ErrQuorum, store.ErrNotHeld)
	}
	if err := hasty.Release(t.Context(), store.ReleaseRequest{Lease: r}); !errors.Is(err, store.ErrQuorum) || errors.Is(err, store.ErrNotHeld) {
		t.Errorf("release: %v, want %v, and not %v", err, store.ErrQuorum, store.ErrNotHeld)
	}

	// The caller's limit.
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := patient.Acquire(ctx, store.AcquireRequest{Lease: request("b")}); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, store.ErrQuorum) {
		t.Errorf("acquire past its deadline: %v, want %v", err, context.DeadlineExceeded)
	}

	// Opening the file has the same limits.
	if _, err := OpenFile(ctx, path, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("open past its deadline: %v, want %v", err, context.DeadlineExceeded)
	}
	_, err = OpenFile(t.Context(), path, &Options{Timeout: 30 * time.Millisecond})
	said(t, err, path, "busy")

	// Inspect does not wait.
	if st, err := patient.Inspect(t.Context(), "a"); err != nil || st.Holder.Owner != r.Owner {
		t.Errorf("inspect: %+v, %v, want the holder %s", st, err, r.Owner)
	}
	if list, err := patient.List(t.Context(), ""); err != nil || len(list) != 1 {
		t.Errorf("list: %+v, %v, want one lock", list, err)
	}

	// A call within its limits waits until the file is free.
	done := make(chan error)
	go func() {
		_, err := patient.Acquire(context.WithoutCancel(t.Context()), store.AcquireRequest{Lease: request("b")})
		done <- err
	}()
	time.Sleep(20 * time.Millisecond)
	stop()
	if err := <-done; err != nil {
		t.Errorf("acquire while the file is busy for a moment: %v", err)
	}
	mustRelease(t, patient, r)
}

// Waiting for a turn within the process ends with the caller's context.
func TestCancelledInTheQueue(t *testing.T) {
	f, s, _ := openFaulty(t, nil, SQLite())
	inside, goOn := make(chan struct{}), make(chan struct{})
	f.onCommit(func(commit func() error) error {
		close(inside)
		<-goOn
		return commit()
	})
	done := make(chan error)
	go func() {
		_, err := s.Acquire(context.WithoutCancel(t.Context()), store.AcquireRequest{Lease: request("a")})
		done <- err
	}()
	<-inside
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Acquire(ctx, store.AcquireRequest{Lease: request("b")}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	late, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := s.Acquire(late, store.AcquireRequest{Lease: request("b")}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want context.DeadlineExceeded", err)
	}
	close(goOn)
	if err := <-done; err != nil {
		t.Errorf("the acquire in progress: %v", err)
	}
}

// Rows of leases that were never released are removed in time, and free locks have no rows.
func TestRowsAreRemoved(t *testing.T) {
	m := newFakeMachine()
	s := m.open(t, filepath.Join(t.TempDir(), "locks.db"))
	rows := func() (n int) {
		if err := s.db.QueryRowContext(t.Context(), "SELECT count(*) FROM leasehold_locks").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	r := request("a")
	mustAcquire(t, s, r)
	mustRelease(t, s, r)
	if n := rows(); n != 0 {
		t.Fatalf("%d rows of free locks, want none", n)
	}
	for _, name := range []string{"b", "c", "d"} {
		mustAcquire(t, s, request(name))
	}
	m.sleep(2 * time.Minute)
	mustAcquire(t, s, request("e"))
	if n := rows(); n != 4 {
		t.Fatalf("%d rows, want 4", n)
	}
	if _, err := s.db.ExecContext(t.Context(), "UPDATE leasehold_meta SET token = ?1, ceiling = ?1 + 10", m.wall.Load()/sweepEvery*sweepEvery+3*sweepEvery-1); err != nil {
		t.Fatal(err)
	}
	mustAcquire(t, s, request("f"))
	if n := rows(); n != 2 {
		t.Fatalf("%d rows after a sweep, want 2", n)
	}
}

func TestSchemaVersion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	s := mustOpen(t, path, nil)
	if _, err := s.db.ExecContext(t.Context(), "UPDATE leasehold_meta SET schema = ?", schemaVersion+1); err != nil {
		t.Fatal(err)
	}
	// A store that opens the file, and one that has it open.
	_, err := OpenFile(t.Context(), path, nil)
	said(t, err, path, "newer version")
	_, err = s.Acquire(t.Context(), store.AcquireRequest{Lease: request("a")})
	said(t, err, path, "newer version")
	var schema int
	if err := s.db.QueryRowContext(t.Context(), "SELECT schema FROM leasehold_meta").Scan(&schema); err != nil || schema != schemaVersion+1 {
		t.Fatalf("the newer schema was touched: %d, %v", schema, err)
	}
	if _, err := s.db.ExecContext(t.Context(), "DELETE FROM leasehold_meta"); err != nil {
		t.Fatal(err)
	}
	_, err = s.Acquire(t.Context(), store.AcquireRequest{Lease: request("a")})
	said(t, err, path, "emptied")
}

func TestBadArguments(t *testing.T) {
	for what, open := range map[string]func() (*Store, error){
		"no handle":        func() (*Store, error) { return New(t.Context(), nil, SQLite(), nil) },
		"no dialect":       func() (*Store, error) { return New(t.Context(), handle(t, t.TempDir()+"/x.db"), Dialect{}, nil) },
		"negative MaxTTL":  func() (*Store, error) { return OpenFile(t.Context(), t.TempDir()+"/x.db", &Options{MaxTTL: -1}) },
		"negative Timeout": func() (*Store, error) { return OpenFile(t.Context(), t.TempDir()+"/x.db", &Options{Timeout: -1}) },
		"empty path":       func() (*Store, error) { return OpenFile(t.Context(), "", nil) },
		"NUL in the path":  func() (*Store, error) { return OpenFile(t.Context(), t.TempDir()+"/x\x00.db", nil) },
	} {
		if s, err := open(); !errors.Is(err, store.ErrInvalid) || s != nil {
			t.Errorf("%s: %v, %v; want an error that matches store.ErrInvalid", what, s, err)
		}
	}
}
