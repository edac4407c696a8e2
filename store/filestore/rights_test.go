//go:build unix

package filestore

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/leasehold-dev/leasehold/store"
)

const nobody = 65534

// All that is in a folder is for its owner only, whatever the umask and the rights of the folder.
func TestCreatedForItsOwnerOnly(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	for _, made := range []bool{false, true} {
		dir := t.TempDir()
		path := filepath.Join(dir, "state", "leasehold", "locks")
		if made {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		s := mustOpen(t, path, &Options{MakeDir: true})
		mustAcquire(t, s, request("a"))
		err := filepath.Walk(path, func(p string, info os.FileInfo, err error) error {
			if err == nil && info.Mode().Perm()&0o077 != 0 && !(made && p == path) {
				t.Errorf("%s: %v, want no rights of others", p, info.Mode())
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Files in a folder that is shared have its rights.
func TestSharedFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks")
	if err := errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, 0o770|os.ModeSetgid)); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, path, &Options{Shared: true})
	mustAcquire(t, s, request("a"))
	err := filepath.Walk(path, func(p string, info os.FileInfo, err error) error {
		want := os.FileMode(0o660)
		if err == nil && info.IsDir() {
			want = 0o770
		}
		if err == nil && info.Mode().Perm() != want {
			t.Errorf("%s: %v, want %v", p, info.Mode(), want)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A folder with which other users could have tampered is refused unless it is declared shared.
func TestExposedFolders(t *testing.T) {
	mustDo := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for what, c := range map[string]struct {
		spoil func(dir, path string)
		words []string // none: it is accepted
	}{
		"group can write the folder": {
			func(_, path string) { mustDo(os.Chmod(path, 0o770)) },
			[]string{"users other than its owner can write it", "Options.Shared"},
		},
		"all can write the folder": {
			func(_, path string) { mustDo(os.Chmod(path, 0o777|os.ModeSticky)) },
			[]string{"users other than its owner can write it", "Options.Shared"},
		},
		"all can write its parent": {
			func(dir, _ string) { mustDo(os.Chmod(dir, 0o777)) },
			[]string{"anybody can replace files", "Options.Shared"},
		},
		"all can write the logs": {
			func(_, path string) { mustDo(os.Chmod(filepath.Join(path, logDir), 0o777)) },
			[]string{"log in it was not made by its owner", "delete it"},
		},
		"others can read the folder":    {func(_, path string) { mustDo(os.Chmod(path, 0o755)) }, nil},
		"group can write its parent":    {func(dir, _ string) { mustDo(os.Chmod(dir, 0o775)) }, nil},
		"its parent has the sticky bit": {func(dir, _ string) { mustDo(os.Chmod(dir, 0o777|os.ModeSticky)) }, nil},
	} {
		t.Run(what, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "dir")
			path := filepath.Join(dir, "locks")
			mustDo(mustOpen(t, path, &Options{MakeDir: true}).Close())
			c.spoil(dir, path)
			if c.words == nil {
				mustAcquire(t, mustOpen(t, path, nil), request("a"))
				return
			}
			_, err := Open(t.Context(), urlOf(path), nil)
			said(t, err, append(c.words, path)...)
			if e := examine(t, path, nil); e.Exposed == nil {
				t.Errorf("the examination does not find it exposed: %+v", e)
			}
			mustAcquire(t, mustOpen(t, path, &Options{Shared: true}), request("a"))
			if e := examine(t, path, &Options{Shared: true}); e.Exposed == nil || !e.Shared || e.Unusable != nil {
				t.Errorf("declared shared: %+v, want it exposed and usable", e)
			}
		})
	}
}

type statOf struct {
	os.FileInfo
	st *syscall.Stat_t
}

func (s statOf) Sys() any { return s.st }

type modeOf struct {
	os.FileInfo
	mode os.FileMode
}

func (m modeOf) Mode() os.FileMode { return m.mode }

// A folder in another user's directory is refused: that user can replace it, even if the
// directory's sticky bit stops all others.
func TestSomebodyElsesDirectory(t *testing.T) {
	dir := t.TempDir()
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	st := *info.Sys().(*syscall.Stat_t)
	for _, c := range []struct {
		uid  uint32
		mode os.FileMode
		why  string
	}{
		{uint32(os.Geteuid()), 0o700, ""},
		{uint32(os.Geteuid()), 0o777 | os.ModeSticky, ""},
		{0, 0o755, ""},
		{0, 0o777 | os.ModeSticky, ""}, // like /tmp
		{0, 0o777, "anybody can replace files"},
		{12345, 0o755, "belongs to another user (uid 12345"},
		{12345, 0o777 | os.ModeSticky, "belongs to another user (uid 12345"},
	} {
		st.Uid = c.uid
		why := replaceable(modeOf{statOf{info, &st}, c.mode | os.ModeDir})
		if (why == "") != (c.why == "") || !strings.Contains(why, c.why) {
			t.Errorf("directory of uid %d with %v: %q, want %q", c.uid, c.mode, why, c.why)
		}
	}
	if os.Geteuid() != 0 {
		return // only root can give a directory away
	}
	theirs := filepath.Join(dir, "theirs")
	path := filepath.Join(theirs, "locks")
	if err := mustOpen(t, path, &Options{MakeDir: true}).Close(); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := errors.Join(os.Chown(theirs, nobody, nobody), os.Symlink(path, link)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{path, link} {
		_, err = Open(t.Context(), urlOf(path), nil)
		said(t, err, path, theirs, "belongs to another user", "Options.Shared")
		if e := examine(t, path, nil); e.Exposed == nil {
			t.Errorf("%s: the examination does not find it exposed: %+v", path, e)
		}
	}
	mustAcquire(t, mustOpen(t, path, &Options{Shared: true}), request("a"))
	missing := filepath.Join(theirs, "missing")
	if e := examine(t, missing, nil); e.Exposed == nil {
		t.Errorf("the examination of a folder to be made there does not find it exposed: %+v", e)
	}
	if _, err := Open(t.Context(), urlOf(missing), nil); err == nil {
		t.Error("a new folder was opened there, want it refused")
	}
	if _, err := os.Lstat(missing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the refused folder: %v, want that it was not made", err)
	}
}

// Another user's folder is refused even if it can be written, and one of root's is accepted.
func TestSomebodyElsesFolder(t *testing.T) {
	info, err := os.Stat(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	st := *info.Sys().(*syscall.Stat_t)
	st.Uid += 12345
	mine := modeOf{info, 0o700 | os.ModeDir}
	if why := exposed(modeOf{statOf{info, &st}, 0o700 | os.ModeDir}); !strings.Contains(why, "belongs to another user") || exposed(mine) != "" {
		t.Fatalf("a folder of another user: %q, want that it belongs to another user", why)
	}
	st.Uid = 0
	if why := exposed(modeOf{statOf{info, &st}, 0o700 | os.ModeDir}); why != "" {
		t.Fatalf("a folder of root: %s, want it accepted", why)
	}
}

// A process that may only read the folder gets an error that says so, and one that may not open it
// disturbs nobody.
func TestReadOnlyFolder(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everything")
	}
	path := filepath.Join(t.TempDir(), "locks")
	if err := mustOpen(t, path, nil).Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(path, logDir, "1"), 0o400); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), urlOf(path), nil)
	said(t, err, path, "permission denied")
	var busy *store.BusyError
	if errors.As(err, &busy) {
		t.Errorf("%v says that a lock is held", err)
	}
}
