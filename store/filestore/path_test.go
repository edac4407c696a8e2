package filestore

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/store"
)

func TestSpecialPaths(t *testing.T) {
	for _, name := range []string{
		"with space.db", "100%.db", "a%20b.db", "what?.db", "what?mode=ro&x=y", "frag#ment.db", "semi;colon&amp=1", "'quotes\"`.db",
		"ünïcödé 锁 🔒.db", "back\\slash", "line\nbreak", "\xff\xfe not UTF-8", ":memory:", "file:x.db", "a+b@c,d=e:f", "-dash", "~", ".hidden",
		strings.Repeat("x", 200),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name, name)
			s := mustOpen(t, path, &Options{MakeDir: true})
			r := request("a")
			mustAcquire(t, s, r)
			second := mustOpen(t, path, nil)
			if _, err := second.Acquire(t.Context(), store.AcquireRequest{Lease: request("a")}); !errors.Is(err, store.ErrBusy) {
				t.Fatalf("acquire by a second handle: %v, want %v", err, store.ErrBusy)
			}
			head := make([]byte, 6)
			if out, err := os.ReadDir(filepath.Dir(path)); err != nil || len(out) != 3 { // with -wal and -shm
				t.Fatalf("the directory has %v (%v), want the file and the two beside it", out, err)
			}
			if err := errors.Join(second.Close(), s.Close()); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(path)
			if copy(head, text); err != nil || string(head) != "SQLite" {
				t.Fatalf("the file begins with %q (%v), want SQLite", head, err)
			}
		})
	}
}

// A relative path is resolved when the store is opened.
func TestRelativePath(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	s := mustOpen(t, "locks.db", nil)
	t.Chdir(t.TempDir())
	mustAcquire(t, s, request("a"))
	for range 2 * maxConns { // on new connections, too
		if _, err := s.List(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
	}
	second := mustOpen(t, filepath.Join(dir, "locks.db"), nil)
	if _, err := second.Acquire(t.Context(), store.AcquireRequest{Lease: request("a")}); !errors.Is(err, store.ErrBusy) {
		t.Fatalf("%v, want %v", err, store.ErrBusy)
	}
}

// Two paths to the same file give the same locks.
func TestLinkedPath(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "locks.db"), filepath.Join(dir, "link.db")
	s := mustOpen(t, path, nil)
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	mustAcquire(t, s, request("a"))
	second := mustOpen(t, link, nil)
	if _, err := second.Acquire(t.Context(), store.AcquireRequest{Lease: request("a")}); !errors.Is(err, store.ErrBusy) {
		t.Fatalf("%v, want %v", err, store.ErrBusy)
	}
}

func TestUnusableFiles(t *testing.T) {
	for what, c := range map[string]struct {
		make  func(path string) error
		words []string
	}{
		"directory": {
			make:  func(path string) error { return os.Mkdir(path, 0o700) },
			words: []string{"directory"},
		},
		"text": {
			make: func(path string) error {
				return os.WriteFile(path, bytes.Repeat([]byte("not a database\n"), 1000), 0o600)
			},
			words: []string{"not an SQLite database"},
		},
		"short text": {
			make:  func(path string) error { return os.WriteFile(path, []byte("x"), 0o600) },
			words: []string{"not an SQLite database"},
		},
		"dangling link": {
			make:  func(path string) error { return os.Symlink(path+" which is not there", path) },
			words: []string{"no such file"},
		},
		"no directory": {
			make:  func(path string) error { return os.Remove(filepath.Dir(path)) },
			words: []string{"there is no directory", "create it"},
		},
		"file for a directory": {
			make: func(path string) error { return os.WriteFile(filepath.Dir(path), nil, 0o600) },
		},
		"database of another program": {
			make: func(path string) error {
				db, err := sql.Open("sqlite", path)
				if err != nil {
					return err
				}
				_, err = db.Exec("CREATE TABLE bookmarks (url TEXT)")
				return errors.Join(err, db.Close(), os.Chmod(path, 0o600))
			},
			words: []string{"bookmarks", "file of their own"},
		},
		"marked by another program": {
			make: func(path string) error {
				db, err := sql.Open("sqlite", path)
				if err != nil {
					return err
				}
				_, err = db.Exec("PRAGMA application_id = 252006673")
				return errors.Join(err, db.Close(), os.Chmod(path, 0o600))
			},
			words: []string{"another program", "252006673"},
		},
		"damaged file": {
			make: func(path string) error {
				s, err := OpenFile(context.Background(), path, nil)
				if err != nil {
					return err
				}
				if err := s.Close(); err != nil {
					return err
				}
				text, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				for i := 100; i < len(text); i++ { // all but the head
					text[i] = 0xa5
				}
				return os.WriteFile(path, text, 0o600)
			},
			words: []string{"damaged", "delete it"},
		},
	} {
		t.Run(what, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "sub", "locks.db")
			if what != "file for a directory" {
				if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.make(path); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(path)
			s, err := OpenFile(t.Context(), path, nil)
			if err == nil {
				s.Close()
			}
			said(t, err, append(c.words, path)...)
			if _, err := os.Stat(filepath.Dir(path)); what == "no directory" && err == nil {
				t.Error("the directory was made")
			}
			if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
		})
	}
}

// If the file is removed or replaced under an open store, other processes can
// hold the same locks in the new file. The open store must stop.
func TestFileReplacedWhileOpen(t *testing.T) {
	for what, connections := range map[string]int{"connections stay": maxConns, "connections are made anew": 0} {
		t.Run(what, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "locks.db")
			s := mustOpen(t, path, nil)
			r := request("a")
			mustAcquire(t, s, r)
			for _, beside := range []string{"", "-wal", "-shm"} {
				if err := os.Remove(path + beside); err != nil {
					t.Fatal(err)
				}
			}
			s.db.SetMaxIdleConns(connections)
			// Without connections to it, the old file no longer exists, and the
			// new one may well get the number that identified it.
			_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("b")})
			said(t, err, path)
			errs := s.Renew(t.Context(), []store.Lease{r})
			said(t, errs[0], path)
			if errors.Is(errs[0], store.ErrNotHeld) {
				t.Errorf("renew: %v matches ErrNotHeld, but the lease may be held", errs[0])
			}
			if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the removed file: %v, want that it was not made again", err)
			}

			fresh := mustOpen(t, path, nil)
			mustAcquire(t, fresh, request("a"))
			_, err = s.Acquire(t.Context(), store.AcquireRequest{Lease: request("b")})
			said(t, err, path, "replaced")
			errs = s.Renew(t.Context(), []store.Lease{r})
			said(t, errs[0], path, "replaced")
			said(t, s.Release(t.Context(), store.ReleaseRequest{Lease: r}), path, "replaced")
			_, err = s.List(t.Context(), "")
			said(t, err, path, "replaced")
			if list, err := fresh.List(t.Context(), ""); err != nil || len(list) != 1 {
				t.Fatalf("list of the new file: %+v, %v, want its one lock", list, err)
			}
		})
	}
}

// If another file's bytes overwrite the file, the log still has what was written
// since, for new processes as well.
func TestFileOverwrittenWhileOpen(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "locks.db"), filepath.Join(dir, "other.db")
	if err := mustOpen(t, other, nil).Close(); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, path, nil)
	r := request("a")
	mustAcquire(t, s, r)
	text, err := os.ReadFile(other)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if fresh, err := OpenFile(t.Context(), path, nil); err == nil {
		defer fresh.Close()
		if g, err := fresh.Acquire(t.Context(), store.AcquireRequest{Lease: request("a")}); err == nil {
			t.Errorf("granted beside the holder: %+v", g)
		}
	}
	mustRelease(t, s, r)
}

func TestSettings(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "locks.db"), nil)
	for name, want := range map[string]string{"journal_mode": "wal", "synchronous": "1", "busy_timeout": "0", "fullfsync": "1"} {
		if got := pragma(t, s.db, name); got != want {
			t.Errorf("%s = %s, want %s", name, got, want)
		}
	}
}
