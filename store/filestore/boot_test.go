package filestore

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// fakeMachine is a machine whose clock and boot id the test sets.
type fakeMachine struct {
	sinceBoot atomic.Int64
	boot      atomic.Value // string
	wall      atomic.Int64 // in microseconds
}

func newFakeMachine() *fakeMachine {
	m := new(fakeMachine)
	m.sinceBoot.Store(int64(time.Hour))
	m.boot.Store("first boot")
	m.wall.Store(time.Now().UnixMicro())
	return m
}

func (m *fakeMachine) reboot(id string, uptime time.Duration) {
	m.boot.Store(id)
	m.sinceBoot.Store(int64(uptime))
}

func (m *fakeMachine) machine() machine {
	return machine{
		now:    func() (clock.Instant, error) { return clock.Instant(m.sinceBoot.Load()), nil },
		bootID: func() (string, error) { return m.boot.Load().(string), nil },
		words:  "a clock made for a test",
		wall:   func() time.Time { return time.UnixMicro(m.wall.Load()) },
	}
}

func (m *fakeMachine) open(t *testing.T, path string) *store.Store {
	t.Helper()
	s, err := open(t.Context(), path, nil, m.machine())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// said requires an error whose text has all of the words.
func said(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one that says %q", words)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q, want text with %q", err, w)
		}
	}
}

// A process that finds the lease of another one counts from when that was written, by the clock
// since boot.
func TestNewcomerCountsFromTheGrant(t *testing.T) {
	m := newFakeMachine()
	path := filepath.Join(t.TempDir(), "locks")
	r := request("a")
	mustAcquire(t, m.open(t, path), r)
	m.sinceBoot.Add(int64(r.TTL) - int64(10*time.Second))
	if st, err := m.open(t, path).Inspect(t.Context(), "a"); err != nil || !st.Held || st.ExpiresIn > 10*time.Second {
		t.Errorf("ten seconds before the end: %+v, %v, want a lock that is held for that long", st, err)
	}
	m.sinceBoot.Add(int64(10 * time.Second))
	mustAcquire(t, m.open(t, path), request("a"))
}

func TestRebootVoidsLeases(t *testing.T) {
	for _, uptime := range []time.Duration{0, time.Hour, 1000 * time.Hour} {
		t.Run(uptime.String(), func(t *testing.T) {
			m := newFakeMachine()
			path := filepath.Join(t.TempDir(), "locks")
			s := m.open(t, path)
			before := map[string]fence.Token{}
			for _, name := range []string{"a", "b"} {
				before[name] = mustAcquire(t, s, request(name)).Token
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}

			s = m.open(t, path) // in the same boot
			if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("a")}); !errors.Is(err, store.ErrBusy) {
				t.Fatalf("acquire after reopening without a reboot: %v, want %v", err, store.ErrBusy)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}

			m.reboot("second boot", uptime)
			m.wall.Add(-int64(time.Hour / time.Microsecond)) // the clock is not set yet
			s = m.open(t, path)
			list, err := s.List(t.Context(), "")
			if err != nil || len(list) != 0 {
				t.Fatalf("list after a reboot: %+v, %v, want no locks", list, err)
			}
			for name, token := range before {
				if g := mustAcquire(t, s, request(name)); g.Token <= token {
					t.Fatalf("token %v of %s after a reboot, want one above %v", g.Token, name, token)
				}
			}
		})
	}
}

// A power failure can leave anything in the log.
func TestDamagedLogAfterAPowerFailure(t *testing.T) {
	for what, text := range map[string]string{"empty": "", "zeros": strings.Repeat("\x00", 5000), "a part": logMagic} {
		t.Run(what, func(t *testing.T) {
			m := newFakeMachine()
			path := filepath.Join(t.TempDir(), "locks")
			s := m.open(t, path)
			before := mustAcquire(t, s, request("a")).Token
			logPath := engineOf(s).d.log.path
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(logPath, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			m.reboot("second boot", time.Minute)
			m.wall.Add(int64(time.Minute / time.Microsecond))
			if g := mustAcquire(t, m.open(t, path), request("a")); g.Token <= before {
				t.Errorf("token %v, want one above %v", g.Token, before)
			}
		})
	}
}

// An open store cannot have survived a reboot: if the boot id in its folder changes, a process
// with another boot id shares the folder.
func TestOtherBootIDMeanwhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks")
	here := newFakeMachine().open(t, path)
	r := request("a")
	mustAcquire(t, here, r)
	elsewhere := newFakeMachine()
	elsewhere.reboot("boot of a container", time.Hour)
	there := elsewhere.open(t, path)

	_, err := here.Acquire(t.Context(), store.AcquireRequest{Lease: request("b")})
	said(t, err, path, "another boot id")
	if errors.Is(err, store.ErrAmbiguous) {
		t.Errorf("acquire: %v matches ErrAmbiguous, but nothing can have been done", err)
	}
	errs := here.Renew(t.Context(), []store.Lease{r})
	said(t, errs[0], "another boot id")
	if errors.Is(errs[0], store.ErrNotHeld) {
		t.Errorf("renew: %v matches ErrNotHeld, but the lease may be held", errs[0])
	}
	said(t, here.Release(t.Context(), store.ReleaseRequest{Lease: r}), "another boot id")
	_, err = here.List(t.Context(), "")
	said(t, err, "another boot id")
	mustAcquire(t, there, request("b"))
}

func TestNoBootID(t *testing.T) {
	m := newFakeMachine().machine()
	m.bootID = func() (string, error) { return "", errors.New("cannot tell boots apart") }
	_, err := open(t.Context(), filepath.Join(t.TempDir(), "locks"), nil, m)
	said(t, err, "locks", "cannot tell boots apart")
}

// No token repeats if the folder is lost or replaced by an older copy.
func TestTokensFollowTheWallClock(t *testing.T) {
	m := newFakeMachine()
	dir := t.TempDir()
	path, spare := filepath.Join(dir, "locks"), filepath.Join(dir, "copy")
	var last fence.Token
	grant := func(what string) {
		t.Helper()
		m.wall.Add(5000) // tokens are up to two milliseconds ahead
		s := m.open(t, path)
		for range 30 {
			m.wall.Add(1000)
			r := request("a")
			g := mustAcquire(t, s, r)
			if g.Token <= last || what != "clock set back" && g.Token < fence.Token(m.wall.Load()) {
				t.Errorf("%s: token %v after %v at %d, want a larger one", what, g.Token, last, m.wall.Load())
			}
			last = max(last, g.Token)
			mustRelease(t, s, r)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	must := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	grant("new folder")
	must(os.CopyFS(spare, os.DirFS(path)))
	grant("folder in use")
	must(os.RemoveAll(path))
	grant("deleted folder")
	must(os.RemoveAll(path), os.Rename(spare, path), os.Chmod(path, 0o700), os.Chmod(filepath.Join(path, logDir), 0o700), os.Chmod(filepath.Join(path, sessionsDir), 0o700))
	grant("older copy")
	m.wall.Add(-500_000)
	grant("clock set back")
	m.wall.Add(1_000_000)
	grant("clock put right")
}
