package filestore

import (
	"context"
	"database/sql"
	"errors"
	"os/exec"
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
	m.wall.Store(1_000_000)
	return m
}

func (m *fakeMachine) sleep(d time.Duration) { m.sinceBoot.Add(int64(d)) }

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

func (m *fakeMachine) open(t *testing.T, path string) *Store {
	t.Helper()
	s, err := openFile(t.Context(), path, nil, sqliteOn(m.machine()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// A lease ends exactly when the machine's clock says so, however long the test
// takes and whatever the wall clock does.
func TestOnlyTheMachinesClockCounts(t *testing.T) {
	m := newFakeMachine()
	s := m.open(t, filepath.Join(t.TempDir(), "locks.db"))
	r := request("a")
	mustAcquire(t, s, r)
	m.sleep(r.TTL - 1)
	if st, err := s.Inspect(t.Context(), "a"); err != nil || !st.Held || st.ExpiresIn != 1 {
		t.Fatalf("inspect a nanosecond before the end: %+v, %v, want it held for another nanosecond", st, err)
	}
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("a")}); !errors.Is(err, store.ErrBusy) {
		t.Fatalf("acquire a nanosecond before the end: %v, want %v", err, store.ErrBusy)
	}
	if errs := s.Renew(t.Context(), []store.Lease{r}); errs[0] != nil {
		t.Fatal(errs[0])
	}
	m.sleep(r.TTL)
	if st, err := s.Inspect(t.Context(), "a"); err != nil || st.Held {
		t.Fatalf("inspect at the end: %+v, %v, want a free lock", st, err)
	}
	if errs := s.Renew(t.Context(), []store.Lease{r}); !errors.Is(errs[0], store.ErrNotHeld) {
		t.Fatalf("%s, want %v", errs[0], store.ErrNotHeld)
	}
	mustAcquire(t, s, request("a"))
}

// A clock with a coarse resolution extends leases and never shortens them.
func TestCoarseClock(t *testing.T) {
	m := newFakeMachine()
	coarse := m.machine()
	coarse.resolution = 16 * time.Millisecond
	exact := coarse.now
	coarse.now = func() (clock.Instant, error) {
		now, err := exact()
		return now - now%clock.Instant(coarse.resolution), err
	}
	s, err := openFile(t.Context(), filepath.Join(t.TempDir(), "locks.db"), nil, sqliteOn(coarse))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	m.sleep(coarse.resolution - 1 - time.Duration(m.sinceBoot.Load())%coarse.resolution) // just before a step
	r := request("a")
	r.TTL = 5 * time.Millisecond
	mustAcquire(t, s, r)
	m.sleep(r.TTL - 1)
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("a")}); !errors.Is(err, store.ErrBusy) {
		t.Fatalf("acquire before the end of the TTL: %v, want %v", err, store.ErrBusy)
	}
	m.sleep(2 * coarse.resolution)
	mustAcquire(t, s, request("a"))
}

func TestRebootVoidsLeases(t *testing.T) {
	// After the reboot the clock can be anywhere relative to the expiries that
	// were written before it.
	for _, uptime := range []time.Duration{0, time.Hour, 1000 * time.Hour} {
		t.Run(uptime.String(), func(t *testing.T) {
			m := newFakeMachine()
			path := filepath.Join(t.TempDir(), "locks.db")
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

// An open store cannot have survived a reboot: if the boot id in its file
// changes, a process with another boot id shares the file.
func TestOtherBootIDMeanwhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
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
	_, err = here.Inspect(t.Context(), "a")
	said(t, err, "another boot id")
	_, err = here.List(t.Context(), "")
	said(t, err, "another boot id")
	mustAcquire(t, there, request("b"))
}

func TestNoBootID(t *testing.T) {
	m := newFakeMachine().machine()
	m.bootID = func() (string, error) { return "", errors.New("cannot tell boots apart") }
	_, err := openFile(t.Context(), filepath.Join(t.TempDir(), "locks.db"), nil, sqliteOn(m))
	said(t, err, "locks.db", "cannot tell boots apart")
}

// A power failure loses every commit that was not synced. Later tokens are still
// larger than those granted by lost commits.
func TestTokensSurvivePowerFailure(t *testing.T) {
	m := newFakeMachine()
	path := filepath.Join(t.TempDir(), "locks.db")
	// Only the state after the last durable commit is certainly on disk.
	disk := filepath.Join(t.TempDir(), "disk")
	if err := exec.Command("mkdir", disk).Run(); err != nil {
		t.Fatal(err)
	}
	d := sqliteOn(m.machine())
	syncs := 0
	durably := d.durably
	d.durably = func(ctx context.Context, db *sql.DB, fn func(*sql.Tx) error) error {
		syncs++
		err := durably(ctx, db, func(tx *sql.Tx) error {
			if mode := pragma(t, tx, "synchronous"); mode != "3" {
				t.Errorf("a durable commit with synchronous = %s, want 3 (EXTRA)", mode)
			}
			return fn(tx)
		})
		// By another process: this one must not open the file, see creating.
		if out, err := exec.Command("sh", "-c", `rm -f "$2"/* && cp "$1"* "$2"`, "sh", path, disk).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return err
	}
	s, err := openFile(t.Context(), path, nil, d)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { s.Close() }() // of the last store
	grant := func() (last fence.Token) {
		for range 20 {
			r := request("a")
			last = mustAcquire(t, s, r).Token
			mustRelease(t, s, r)
		}
		return last
	}
	powerFailure := func(boot string) {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("sh", "-c", `rm -f "$1"* && cp "$2"/* "$3"`, "sh", path, disk, filepath.Dir(path)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		m.reboot(boot, time.Minute)
		if s, err = openFile(t.Context(), path, nil, d); err != nil {
			t.Fatal(err)
		}
	}

	last := grant()
	if syncs != 1 {
		t.Fatalf("%d durable commits for opening and 20 grants, want 1", syncs)
	}
	powerFailure("second boot")
	if g := grant(); g <= last+19 {
		t.Fatalf("20 tokens up to %v after a power failure, want more than 19 above %v", g, last)
	}

	// The same at the end of a range: 10 more tokens, then a new range.
	if _, err := s.db.ExecContext(t.Context(), "UPDATE leasehold_meta SET token = ceiling - 10"); err != nil {
		t.Fatal(err)
	}
	syncs = 0
	last = grant()
	if syncs != 1 {
		t.Fatalf("%d durable commits at the end of a range, want 1", syncs)
	}
	powerFailure("third boot")
	if g := grant(); g <= last+19 {
		t.Fatalf("20 tokens up to %v after a power failure, want more than 19 above %v", g, last)
	}
	if mode := pragma(t, s.db, "synchronous"); mode != "1" {
		t.Errorf("synchronous = %s for usual commits, want 1 (NORMAL)", mode)
	}
}

func pragma(t *testing.T, db interface {
	QueryRow(string, ...any) *sql.Row
}, name string) (v string) {
	t.Helper()
	if err := db.QueryRow("PRAGMA " + name).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
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

// No token repeats if the tables are lost with the file, lost with the log that
// had the last commits, or replaced by an older copy.
func TestTokensFollowTheWallClock(t *testing.T) {
	m := newFakeMachine()
	dir := t.TempDir()
	path := filepath.Join(dir, "locks.db")
	var last fence.Token
	grant := func(what string) {
		t.Helper()
		s := m.open(t, path)
		for range 3 {
			m.wall.Add(1000)
			r := request("a")
			g := mustAcquire(t, s, r)
			if g.Token <= last {
				t.Errorf("%s: token %v after %v, want a larger one", what, g.Token, last)
			}
			last = max(last, g.Token)
			mustRelease(t, s, r)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	shell := func(script string) {
		t.Helper()
		if out, err := exec.Command("sh", "-ec", script, "sh", path).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	grant("new file")
	shell(`cp "$1" "$1.copy"`)
	grant("file in use")
	shell(`rm "$1"`)
	grant("deleted file")
	shell(`: > "$1"`)
	grant("emptied file")
	shell(`cp "$1.copy" "$1"`)
	grant("older copy")

	// If the clock goes back, tokens still rise as long as the tables are there.
	m.wall.Add(-500_000)
	grant("clock set back")
	m.wall.Store(9e18)
	grant("clock in the distant future")
	m.wall.Store(1)
	grant("clock put right")
}
