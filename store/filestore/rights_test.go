//go:build unix

package filestore

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func mode(t *testing.T, path string) os.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}

func TestCreatedForItsOwnerOnly(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0)) // which must not matter
	dir := t.TempDir()
	path := filepath.Join(dir, "state", "leasehold", "locks.db")
	s := mustOpen(t, path, &Options{MakeDir: true})
	mustAcquire(t, s, request("a"))
	for p, want := range map[string]os.FileMode{
		filepath.Join(dir, "state"): 0o700,
		filepath.Dir(path):          0o700,
		path:                        0o600,
		path + "-wal":               0o600,
		path + "-shm":               0o600,
	} {
		if got := mode(t, p); got != want {
			t.Errorf("%s: %v, want %v", p, got, want)
		}
	}
}

// A file with which other users could have tampered is refused unless it is
// declared shared.
func TestExposedFiles(t *testing.T) {
	mustDo := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for what, c := range map[string]struct {
		spoil func(dir, path string)
		words []string
		never bool // refused even if shared
	}{
		"group can write the file": {
			spoil: func(_, path string) { mustDo(os.Chmod(path, 0o660)) },
			words: []string{"users other than its owner can write it", "-rw-rw----", "Options.Shared"},
		},
		"all can write the file": {
			spoil: func(_, path string) { mustDo(os.Chmod(path, 0o646)) },
			words: []string{"users other than its owner can write it", "Options.Shared"},
		},
		"all can write the directory": {
			spoil: func(dir, _ string) { mustDo(os.Chmod(dir, 0o777)) },
			words: []string{"anybody can replace files", "Options.Shared"},
		},
		"all can write the log": {
			spoil: func(_, path string) {
				mustDo(os.WriteFile(path+"-wal", nil, 0o600))
				mustDo(os.Chmod(path+"-wal", 0o666))
			},
			words: []string{"locks.db-wal", "delete it"},
		},
		"log that is a link": {
			spoil: func(dir, path string) { mustDo(os.Symlink(filepath.Join(dir, "x"), path+"-wal")) },
			words: []string{"locks.db-wal", "delete it"},
			never: true, // SQLite does not follow it
		},
	} {
		t.Run(what, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "dir")
			path := filepath.Join(dir, "locks.db")
			if err := mustOpen(t, path, &Options{MakeDir: true}).Close(); err != nil {
				t.Fatal(err)
			}
			c.spoil(dir, path)
			_, err := OpenFile(t.Context(), path, nil)
			said(t, err, append(c.words, path)...)
			if c.never {
				return
			}
			s := mustOpen(t, path, &Options{Shared: true})
			mustAcquire(t, s, request("a"))
		})
	}
	// No other user can replace these files.
	for what, spoil := range map[string]func(dir, path string){
		"file that others can read":     func(_, path string) { mustDo(os.Chmod(path, 0o644)) },
		"group can write the directory": func(dir, _ string) { mustDo(os.Chmod(dir, 0o775)) },
		"directory with a sticky bit":   func(dir, _ string) { mustDo(os.Chmod(dir, 0o777|os.ModeSticky)) },
	} {
		t.Run(what, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "dir")
			path := filepath.Join(dir, "locks.db")
			if err := mustOpen(t, path, &Options{MakeDir: true}).Close(); err != nil {
				t.Fatal(err)
			}
			spoil(dir, path)
			mustAcquire(t, mustOpen(t, path, nil), request("a"))
		})
	}
}

// forNobody returns a copy of this binary that the user "nobody" can run. Tests that run as
// root use it, as root has all rights everywhere.
func forNobody(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sqlstore") // "nobody" cannot enter the directory of t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	exe := filepath.Join(dir, "test")
	if err := errors.Join(os.Chmod(dir, 0o755), copyFile(exe, command(t, "refused").Path)); err != nil {
		t.Fatal(err)
	}
	return exe
}

const nobody = 65534

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

func TestNoRights(t *testing.T) {
	var exe string
	if os.Geteuid() == 0 {
		exe = forNobody(t)
	}
	for what, c := range map[string]struct {
		spoil func(dir, path string) error
		words []string
	}{
		"directory above": {
			spoil: func(dir, path string) error {
				return errors.Join(os.RemoveAll(dir), os.Chmod(filepath.Dir(dir), 0o555))
			},
			words: []string{"mkdir", "permission denied"},
		},
		"new file": {
			spoil: func(dir, path string) error { return errors.Join(os.Remove(path), os.Chmod(dir, 0o555)) },
			words: []string{"permission denied"},
		},
		"directory of a file": {
			spoil: func(dir, _ string) error { return os.Chmod(dir, 0o555) },
			words: []string{"cannot be written", "its directory"},
		},
		"file": {
			spoil: func(_, path string) error { return os.Chmod(path, 0o400) },
			words: []string{"cannot be opened for writing"},
		},
		"unreadable file": {
			spoil: func(_, path string) error { return os.Chmod(path, 0) },
			words: []string{"cannot be opened for writing"},
		},
	} {
		t.Run(what, func(t *testing.T) {
			top, err := os.MkdirTemp("", "sqlstore")
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(top, "dir")
			path := filepath.Join(dir, "locks.db")
			t.Cleanup(func() {
				_ = errors.Join(os.Chmod(top, 0o700), os.Chmod(dir, 0o700)) // those that exist
				os.RemoveAll(top)
			})
			if err := mustOpen(t, path, &Options{MakeDir: true}).Close(); err != nil {
				t.Fatal(err)
			}
			if exe != "" {
				for _, p := range []string{top, dir, path} {
					if err := os.Chown(p, nobody, nobody); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := c.spoil(dir, path); err != nil {
				t.Fatal(err)
			}
			cmd := command(t, "refused", path)
			if exe != "" {
				cmd.Path = exe
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
			}
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			for _, w := range append(c.words, path) {
				if !strings.Contains(string(out), w) {
					t.Errorf("error %q, want text with %q", out, w)
				}
			}
		})
	}
}

// A file in another user's directory is refused: that user can replace the file,
// even if the directory's sticky bit stops all others.
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
		{12345, 0o700, "belongs to another user (uid 12345"},
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
	path := filepath.Join(theirs, "locks.db")
	if err := mustOpen(t, path, &Options{MakeDir: true}).Close(); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link.db")
	if err := errors.Join(os.Chown(theirs, nobody, nobody), os.Symlink(path, link)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{path, link} {
		_, err = OpenFile(t.Context(), path, nil)
		said(t, err, path, theirs, "belongs to another user", "Options.Shared")
		if e := examineFile(t, path, nil); e.Exposed == nil {
			t.Errorf("%s: the examination does not find it exposed: %+v", path, e)
		}
	}
	mustAcquire(t, mustOpen(t, path, &Options{Shared: true}), request("a"))
	missing := filepath.Join(theirs, "missing.db")
	if e := examineFile(t, missing, nil); e.Exposed == nil {
		t.Errorf("the examination of a file to be made there does not find it exposed: %+v", e)
	}
	if _, err := OpenFile(t.Context(), missing, nil); err == nil {
		t.Error("a new file was opened there, want it refused")
	}
	if _, err := os.Lstat(missing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the refused file: %v, want that it was not made", err)
	}
}

type modeOf struct {
	os.FileInfo
	mode os.FileMode
}

func (m modeOf) Mode() os.FileMode { return m.mode }

// Another user's file is refused even if it can be written.
func TestSomebodyElsesFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	if err := mustOpen(t, path, nil).Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if why := exposed(info); why != "" {
		t.Fatalf("a file of this user: %s, want it accepted", why)
	}
	st := *info.Sys().(*syscall.Stat_t)
	st.Uid += 12345
	if why := exposed(statOf{info, &st}); !strings.Contains(why, "belongs to another user") {
		t.Fatalf("a file of another user: %q, want that it belongs to another user", why)
	}
	st.Uid = 0
	if why := exposed(statOf{info, &st}); why != "" {
		t.Fatalf("a file of root: %s, want it accepted", why)
	}
}

type statOf struct {
	os.FileInfo
	st *syscall.Stat_t
}

func (s statOf) Sys() any { return s.st }

func init() { roles["locked"] = locked }

// locked prints whether another process has the lock that every connection of SQLite has on
// a file in use.
func locked(args []string) error {
	f, err := os.OpenFile(args[0], os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	const pending = 0x40000000 // where SQLite's locks begin: two single ones, then the shared
	l := syscall.Flock_t{Type: syscall.F_WRLCK, Start: pending + 2, Len: 510}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &l); err != nil {
		return err
	}
	fmt.Print(l.Type != syscall.F_UNLCK)
	return nil
}

// Opening a file must not drop SQLite's locks on it in this process. POSIX drops
// all of a process's locks on a file when it closes any descriptor of the file.
func TestOpeningKeepsTheLocksOfOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	s := mustOpen(t, path, nil)
	mustAcquire(t, s, request("a"))
	look := func(want string) {
		t.Helper()
		if out, err := command(t, "locked", path).CombinedOutput(); err != nil || string(out) != want {
			t.Errorf("locked: %s, %v, want %s", out, err, want)
		}
	}
	look("true")
	if _, err := prepareFile(path, &Options{}); err != nil {
		t.Fatal(err)
	}
	if err := mustOpen(t, path, nil).Close(); err != nil {
		t.Fatal(err)
	}
	look("true")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	look("false")
}
