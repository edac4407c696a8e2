//go:build unix

package filestore

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
)

func init() { roles["obey"] = obey }

// obey opens the file and acquires each lock whose name it reads, one a line, and releases
// it if the line begins with "-". It answers each line with the token, or with the error.
func obey(args []string) error {
	ctx := context.Background()
	s, err := OpenFile(ctx, args[0], nil)
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Println("open")
	held := map[string]store.Lease{}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		name, release := strings.CutPrefix(in.Text(), "-")
		if release {
			fmt.Println("released:", s.Release(ctx, store.ReleaseRequest{Lease: held[name]}))
			continue
		}
		r := request(name)
		g, err := s.Acquire(ctx, store.AcquireRequest{Lease: r})
		if err != nil {
			fmt.Println("refused:", err)
			continue
		}
		held[name] = r
		fmt.Println(g.Token)
	}
	return nil
}

// holder acquires locks in a file, in this process or in another.
type holder interface {
	acquire(t *testing.T, name string) (fence.Token, error)
	end(t *testing.T)
}

type holderHere struct{ s *Store }

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

// Damage to the files of a held lock never gives the lock to a second holder,
// does not let the holder take locks that new processes cannot see, and never
// repeats a token.
func TestFilesDamagedWhileHeld(t *testing.T) {
	remove := func(paths ...string) error {
		var errs []error
		for _, p := range paths {
			errs = append(errs, os.Remove(p))
		}
		return errors.Join(errs...)
	}
	damages := map[string]struct {
		do    func(path string) error
		open  func(path string) string // the path that another client opens
		words []string                 // in the error of that client
		opens bool                     // that client may open it
	}{
		"log and index removed": {
			do:    func(p string) error { return remove(p+"-wal", p+"-shm") },
			words: []string{"in use", "locks.db-wal"},
		},
		"log removed": {
			do:    func(p string) error { return remove(p + "-wal") },
			words: []string{"in use", "locks.db-wal"},
		},
		"index removed": {
			do:    func(p string) error { return remove(p + "-shm") },
			words: []string{"in use", "locks.db-shm"},
		},
		"log replaced by a copy": {
			do: func(p string) error {
				text, err := os.ReadFile(p + "-wal")
				return errors.Join(err, os.Remove(p+"-wal"), os.WriteFile(p+"-wal", text, 0o600))
			},
			words: []string{"in use", "locks.db-wal"},
		},
		"log emptied": {
			do:    func(p string) error { return os.Truncate(p+"-wal", 0) },
			words: []string{"locks.db"},
		},
		"file emptied": {
			do:    func(p string) error { return os.Truncate(p, 0) },
			words: []string{"in use", "emptied"},
		},
		"file shortened": {
			do:    func(p string) error { return os.Truncate(p, 1024) },
			opens: true,
		},
		"file removed": {
			do:    func(p string) error { return os.Remove(p) },
			words: []string{"in use", "locks.db-wal"},
		},
		"file moved": {
			do:    func(p string) error { return os.Rename(p, p+".moved") },
			open:  func(p string) string { return p + ".moved" },
			words: []string{"in use", "locks.db.moved-wal"},
		},
		"hard link": {
			do:    func(p string) error { return os.Link(p, p+".link") },
			open:  func(p string) string { return p + ".link" },
			words: []string{"2 names", "hard link"},
		},
		"hard link, opened by the old name": {
			do:    func(p string) error { return os.Link(p, p+".link") },
			words: []string{"2 names", "hard link"},
		},
		"hard link in place of the name": {
			do:    func(p string) error { return errors.Join(os.Link(p, p+".link"), os.Remove(p)) },
			open:  func(p string) string { return p + ".link" },
			words: []string{"in use", "locks.db.link-wal"},
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
				path := filepath.Join(t.TempDir(), "locks.db")
				h := start(t, path)
				last, err := h.acquire(t, "stock")
				if err != nil {
					t.Fatal(err)
				}
				if err := c.do(path); err != nil {
					t.Fatal(err)
				}
				other := path
				if c.open != nil {
					other = c.open(path)
				}
				s, err := OpenFile(t.Context(), other, &Options{Timeout: 500 * time.Millisecond})
				switch {
				case err != nil:
					said(t, err, append(c.words, other)...)
				case !c.opens:
					t.Error("opened a damaged file beside the holder")
					fallthrough
				default:
					if g, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("stock")}); err == nil {
						t.Errorf("granted beside the holder: %+v", g)
					}
					s.Close()
				}

				if token, err := h.acquire(t, "another"); err == nil {
					t.Errorf("the holder acquired another lock after the damage, token %v", token)
				}
				h.end(t)
				if strings.HasPrefix(what, "hard link") {
					os.Remove(path)
				}
				if s, err = OpenFile(t.Context(), other, &Options{Timeout: time.Minute}); err != nil && what != "file shortened" {
					t.Fatalf("open after the holder has ended: %v", err)
				}
				if err != nil {
					return // this damage remains
				}
				defer s.Close()
				if g, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("new")}); err != nil || g.Token <= last {
					t.Errorf("token %v (%v) after %v, want a larger one", g.Token, err, last)
				}
			})
		}
	}
}
