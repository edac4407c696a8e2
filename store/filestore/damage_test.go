//go:build unix

package filestore

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
)

func init() { roles["obey"] = obey }

// obey opens the folder and acquires each lock whose name it reads, one a line. It answers each
// line with the token, or with the error.
func obey(args []string) error {
	ctx := context.Background()
	s, err := Open(ctx, urlOf(args[0]), nil)
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Println("open")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		g, err := s.Acquire(ctx, store.AcquireRequest{Lease: request(in.Text())})
		if err != nil {
			fmt.Println("refused:", err)
			continue
		}
		fmt.Println(g.Token)
	}
	return nil
}

// holder acquires locks in a folder, in this process or in another.
type holder interface {
	acquire(t *testing.T, name string) (fence.Token, error)
	end(t *testing.T)
}

type holderHere struct{ s *store.Store }

func (h holderHere) acquire(t *testing.T, name string) (fence.Token, error) {
	g, err := h.s.Acquire(t.Context(), store.AcquireRequest{Lease: request(name)})
	return g.Token, err
}

func (h holderHere) end(t *testing.T) { _ = h.s.Close() }

type holderElsewhere struct{ c *child }

func (h holderElsewhere) acquire(t *testing.T, name string) (token fence.Token, err error) {
	t.Helper()
	if _, err := fmt.Fprintln(h.c.in, name); err != nil {
		t.Fatal(err)
	}
	answer := h.c.line(t)
	if _, err := fmt.Sscan(answer, &token); err != nil {
		return 0, errors.New(answer)
	}
	return token, nil
}

func (h holderElsewhere) end(t *testing.T) {
	h.c.in.Close()
	_, _ = h.c.out.ReadString(0)
	_ = h.c.Wait()
}

// newestLog returns the log that counts.
func newestLog(path string) string {
	names, _ := readNames(filepath.Join(path, logDir))
	most := 0
	for _, name := range names {
		n, _ := strconv.Atoi(name)
		most = max(most, n)
	}
	return filepath.Join(path, logDir, strconv.Itoa(most))
}

// Damage to the files of a held lock never gives the lock to a second holder, does not let the
// holder take locks that new processes cannot see, and never repeats a token.
func TestFilesDamagedWhileHeld(t *testing.T) {
	damages := map[string]struct {
		do    func(log string) error
		words []string // in the error of another client
		keep  bool     // the damage remains when the holder has ended
	}{
		"log removed": {
			do:    os.Remove,
			words: []string{"in use", "removed or replaced"},
		},
		"all logs removed": {
			do:    func(log string) error { return os.RemoveAll(filepath.Dir(log)) },
			words: []string{"in use", "removed or replaced"},
		},
		"log replaced by a copy": {
			do: func(log string) error {
				text, err := os.ReadFile(log)
				return errors.Join(err, os.Remove(log), os.WriteFile(log, text, 0o600))
			},
			words: []string{"in use", "removed or replaced"},
		},
		"log replaced by an older copy": {
			do: func(log string) error {
				text, err := os.ReadFile(log)
				return errors.Join(err, os.WriteFile(log, text[:len(text)-50], 0o600))
			},
			words: []string{"in use", "emptied or shortened"},
		},
		"log emptied": {
			do:    func(log string) error { return os.Truncate(log, 0) },
			words: []string{"in use"},
		},
		"log shortened": {
			do:    func(log string) error { return os.Truncate(log, 100) },
			words: []string{"in use"},
		},
		"hard link": {
			do:    func(log string) error { return os.Link(log, log+".link") },
			words: []string{"2 names", "hard link"},
			keep:  true,
		},
	}
	holders := map[string]func(t *testing.T, path string) holder{
		"of this process": func(t *testing.T, path string) holder { return holderHere{mustOpen(t, path, nil)} },
		"of another process": func(t *testing.T, path string) holder {
			c := start(t, "obey", path)
			c.line(t)
			return holderElsewhere{c}
		},
	}
	for what, c := range damages {
		for whose, start := range holders {
			t.Run(what+", holder "+whose, func(t *testing.T) {
				t.Parallel()
				path := filepath.Join(t.TempDir(), "locks")
				h := start(t, path)
				last, err := h.acquire(t, "stock")
				if err != nil {
					t.Fatal(err)
				}
				if err := c.do(newestLog(path)); err != nil {
					t.Fatal(err)
				}
				if s, err := Open(t.Context(), urlOf(path), nil); err == nil {
					t.Error("opened a damaged folder beside the holder")
					if g, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("stock")}); err == nil {
						t.Errorf("granted beside the holder: %+v", g)
					}
					s.Close()
				} else {
					said(t, err, append(c.words, path)...)
				}
				if token, err := h.acquire(t, "another"); err == nil {
					t.Errorf("the holder acquired another lock after the damage, token %v", token)
				}
				h.end(t)
				if c.keep {
					if err := os.Remove(newestLog(path) + ".link"); err != nil {
						t.Fatal(err)
					}
				}
				s, err := Open(t.Context(), urlOf(path), nil)
				if err != nil {
					t.Fatalf("open after the holder has ended: %v", err)
				}
				defer s.Close()
				if g, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("new")}); err != nil || g.Token < last || !c.keep && g.Token == last {
					t.Errorf("token %v (%v) after %v, want a larger one", g.Token, err, last)
				}
			})
		}
	}
}

// If the folder is removed or moved under an open store, other processes can hold the same locks
// in a new one. The open store must stop.
func TestFolderReplacedWhileOpen(t *testing.T) {
	for what, replace := range map[string]func(path string) error{
		"removed": os.RemoveAll,
		"moved":   func(path string) error { return os.Rename(path, path+".moved") },
	} {
		t.Run(what, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "locks")
			s := mustOpen(t, path, nil)
			r := request("a")
			mustAcquire(t, s, r)
			if err := replace(path); err != nil {
				t.Fatal(err)
			}
			fresh := mustOpen(t, path, nil)
			mustAcquire(t, fresh, request("a"))
			_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("b")})
			said(t, err, path, "removed or replaced")
			errs := s.Renew(t.Context(), []store.Lease{r})
			said(t, errs[0], path, "removed or replaced")
			if errors.Is(errs[0], store.ErrNotHeld) {
				t.Errorf("renew: %v matches ErrNotHeld, but the lease may be held", errs[0])
			}
			said(t, s.Release(t.Context(), store.ReleaseRequest{Lease: r}), path, "removed or replaced")
			_, err = s.List(t.Context(), "")
			said(t, err, path, "removed or replaced")
		})
	}
}

func init() { roles["limited"] = limited }

// limited lets the log grow by a part of a frame at most, and tries to acquire a lock.
func limited(args []string) error {
	ctx := context.Background()
	s, err := Open(ctx, urlOf(args[0]), nil)
	if err != nil {
		return err
	}
	defer s.Close()
	mustNot := func(what string, err error) error {
		if err == nil {
			return errors.New(what + " without room")
		}
		return nil
	}
	r := request("held")
	if _, err := s.Acquire(ctx, store.AcquireRequest{Lease: r}); err != nil {
		return err
	}
	if err := limitFiles(uint64(engineOf(s).d.log.pos) + 100); err != nil {
		return err
	}
	_, err = s.Acquire(ctx, store.AcquireRequest{Lease: request("other")})
	fmt.Println(err)
	if err := mustNot("acquired", err); err != nil {
		return err
	}
	_, _ = os.Stdin.Read(make([]byte, 1))
	return nil
}

// A process that cannot write grants nothing and says why. What it has written of a frame disturbs
// nobody.
func TestNoRoom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks")
	c := start(t, "limited", path)
	if line := c.line(t); !strings.Contains(line, "file too large") || !strings.Contains(line, path) {
		t.Errorf("acquire without room: %s", line)
	}
	s := mustOpen(t, path, nil)
	mustAcquire(t, s, request("other"))
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("held")}); !errors.Is(err, store.ErrBusy) {
		t.Errorf("acquire what the other holds: %v, want %v", err, store.ErrBusy)
	}
	c.begin(t)
	c.end(t)
}

// A copy of the folder is another one: the processes of the original are not in it.
func TestCopyOfTheFolder(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "locks")
	s := mustOpen(t, path, nil)
	held := request("a")
	held.TTL = time.Hour
	before := mustAcquire(t, s, held)
	if err := os.Mkdir(filepath.Join(dir, "copy"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, sub := range []string{logDir, sessionsDir} {
		to := filepath.Join(dir, "copy", sub)
		if err := os.Mkdir(to, 0o700); err != nil {
			t.Fatal(err)
		}
		names, err := readNames(filepath.Join(path, sub))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, bellSuffix) {
				continue
			}
			text, err := os.ReadFile(filepath.Join(path, sub, name))
			if err := errors.Join(err, os.WriteFile(filepath.Join(to, name), text, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if g := mustAcquire(t, mustOpen(t, filepath.Join(dir, "copy"), nil), request("a")); g.Token <= before.Token {
		t.Errorf("token %v in the copy, after %v", g.Token, before.Token)
	}
	if errs := s.Renew(t.Context(), []store.Lease{held}); errs[0] != nil {
		t.Errorf("the original: renew: %v", errs[0])
	}
}
