package filestore

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/store"
)

func TestSpecialPaths(t *testing.T) {
	for _, name := range []string{
		"with space", "100%", "a%20b", "what?", "what?mode=ro&x=y", "frag#ment", "semi;colon&amp=1", "'quotes\"`",
		"ünïcödé 锁 🔒", "back\\slash", "line\nbreak", "\xff\xfe not UTF-8", ":memory:", "file:x", "a+b@c,d=e:f", "-dash", "~", ".hidden",
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
			if out, err := os.ReadDir(filepath.Dir(path)); err != nil || len(out) != 1 {
				t.Fatalf("the directory has %v (%v), want the folder alone", out, err)
			}
		})
	}
}

// A relative path is resolved when the store is opened.
func TestRelativePath(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	s := mustOpen(t, "locks", nil)
	t.Chdir(t.TempDir())
	mustAcquire(t, s, request("a"))
	second := mustOpen(t, filepath.Join(dir, "locks"), nil)
	if _, err := second.Acquire(t.Context(), store.AcquireRequest{Lease: request("a")}); !errors.Is(err, store.ErrBusy) {
		t.Fatalf("%v, want %v", err, store.ErrBusy)
	}
}

// Two paths to the same folder give the same locks.
func TestLinkedPath(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "locks"), filepath.Join(dir, "link")
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

func TestNetworkFileSystemIsRefused(t *testing.T) {
	said(t, local("NFS"), "NFS", "a server")
	if err := local(""); err != nil {
		t.Error(err)
	}
}

func TestUnusableFolders(t *testing.T) {
	for what, c := range map[string]struct {
		make  func(path string) error
		words []string
	}{
		"file": {
			make:  func(path string) error { return os.WriteFile(path, []byte("x"), 0o600) },
			words: []string{"not a directory"},
		},
		"folder of something else": {
			make: func(path string) error {
				return errors.Join(os.Mkdir(path, 0o700), os.WriteFile(filepath.Join(path, "notes"), nil, 0o600))
			},
			words: []string{"something else", "notes"},
		},
		"dangling link": {
			make:  func(path string) error { return os.Symlink(path+" which is not there", path) },
			words: []string{"symbolic link", "not there"},
		},
		"no directory": {
			make:  func(path string) error { return os.Remove(filepath.Dir(path)) },
			words: []string{"there is no directory", "create it"},
		},
	} {
		t.Run(what, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "sub", "locks")
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := c.make(path); err != nil {
				t.Fatal(err)
			}
			s, err := Open(t.Context(), urlOf(path), nil)
			if err == nil {
				s.Close()
			}
			said(t, err, append(c.words, path)...)
			if _, err := os.Stat(filepath.Dir(path)); what == "no directory" && err == nil {
				t.Error("the directory was made")
			}
		})
	}
}
