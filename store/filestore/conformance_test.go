package filestore

import (
	"context"
	"database/sql"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/storetest"
)

func TestFileConforms(t *testing.T) {
	t.Parallel() // it mostly waits
	var path string
	storetest.Run(t, func(t *testing.T) store.Store {
		path = filepath.Join(t.TempDir(), "state", "locks.db")
		return mustOpen(t, path, &Options{MakeDir: true})
	}, storetest.Options{
		Second: func(t *testing.T) store.Store { return mustOpen(t, path, nil) },
		NoPush: runtime.GOOS != "linux", // the path of a temporary directory may be too long for a socket
	})
}

// A handle of the caller conforms with default settings: no write-ahead log, no
// immediate transactions, any number of connections.
func TestHandleConforms(t *testing.T) {
	t.Parallel() // it mostly waits
	var path string
	open := func(t *testing.T) store.Store {
		s, err := New(t.Context(), handle(t, path), SQLite(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	storetest.Run(t, func(t *testing.T) store.Store {
		path = filepath.Join(t.TempDir(), "app.db")
		return open(t)
	}, storetest.Options{Second: open, NoPush: true})
}

// One connection is enough: no call needs a second connection while it has the
// first.
func TestHandleWithOneConnectionConforms(t *testing.T) {
	t.Parallel() // it mostly waits
	storetest.Run(t, func(t *testing.T) store.Store {
		db := handle(t, filepath.Join(t.TempDir(), "app.db"))
		db.SetMaxOpenConns(1)
		s, err := New(t.Context(), db, SQLite(), &Options{MaxTTL: 1 << 40})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}, storetest.Options{})
}

// handle opens a database that does not wait for the disk: no test cuts the power.
func handle(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path+"?_pragma=synchronous(off)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func mustOpen(t testing.TB, path string, o *Options) *Store {
	t.Helper()
	s, err := OpenFile(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func request(name string) store.Lease {
	return store.Lease{Name: name, Owner: store.NewOwner(), TTL: 60e9}
}

func mustAcquire(t testing.TB, s *Store, r store.Lease) store.Grant {
	t.Helper()
	g, err := s.Acquire(context.WithoutCancel(t.Context()), store.AcquireRequest{Lease: r})
	if err != nil {
		t.Fatalf("acquire %q: %v", r.Name, err)
	}
	return g
}

func mustRelease(t testing.TB, s *Store, r store.Lease) {
	t.Helper()
	if err := s.Release(context.WithoutCancel(t.Context()), store.ReleaseRequest{Lease: r}); err != nil {
		t.Fatalf("release %q: %v", r.Name, err)
	}
}
