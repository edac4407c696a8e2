//go:build unix

package filestore

import (
	"context"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// waitFor starts a Wait and returns once its place is in the queue.
func waitFor(t *testing.T, s *store.Store, r store.Lease) (done chan error) {
	t.Helper()
	placed := make(chan struct{}, 1)
	done = make(chan error, 1)
	go func() {
		_, err := s.Wait(context.WithoutCancel(t.Context()), store.WaitRequest{Lease: r}, func(error) {
			select {
			case placed <- struct{}{}:
			default:
			}
		})
		done <- err
	}()
	select {
	case <-placed:
	case err := <-done:
		t.Fatalf("wait ended early: %v", err)
	}
	return done
}

// within requires an end of a Wait that is not brought about by a TTL.
func within(t *testing.T, done chan error, what string) {
	t.Helper()
	select {
	case err := <-done:
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	case <-time.After(time.Minute): // of an hour
		t.Fatalf("%s: the waiter does not get the lock", what)
	}
}

func kill(t *testing.T, c *child) {
	t.Helper()
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
}

// The step that frees the lock skips waiters whose process was killed, however long their places
// last and however many there are.
func TestDeadWaitersAreSkipped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks")
	s := mustOpen(t, path, nil)
	holder := request("the lock")
	holder.TTL = time.Hour
	mustAcquire(t, s, holder)
	var killed []*child
	for range 3 {
		c := start(t, "wait", path, "1h")
		c.line(t)
		killed = append(killed, c)
	}
	next := start(t, "wait", path, "1h")
	owner := next.line(t)
	last := start(t, "wait", path, "1h")
	last.line(t)
	for _, c := range append(killed, last) {
		kill(t, c)
	}
	mustRelease(t, s, holder)
	if got := holderOf(t, s, "the lock"); got != owner {
		t.Fatalf("handed to %q, want %q", got, owner)
	}
	if line := next.line(t); line != "granted" {
		t.Fatalf("the waiter prints %q, want granted", line)
	}
	// The waiter that is left is dead, too, so that the end of the holder frees the lock.
	kill(t, next)
	mustAcquire(t, s, request("the lock"))
}

// A waiter gets the lock of a process that was killed, past other waiters that were killed.
func TestDeadHolderIsSkipped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks")
	s := mustOpen(t, path, nil)
	holder := start(t, "hold", path, "1h")
	holder.line(t)
	dead := start(t, "wait", path, "1h")
	dead.line(t)
	r := request("the lock")
	r.TTL = time.Hour
	done := waitFor(t, s, r)
	kill(t, dead)
	kill(t, holder)
	within(t, done, "after the end of the holder")
	mustRelease(t, s, r)
}

// A process that is stopped is not dead: its lease lasts. It holds up nobody on another lock, nor
// on the same one when its lease is over.
func TestStoppedProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks")
	s := mustOpen(t, path, nil)
	for range 10 { // it is stopped at different moments of writing
		c := start(t, "hold", path, "1h")
		c.line(t)
		if err := c.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("the lock")}); !errors.Is(err, store.ErrBusy) {
			t.Errorf("acquire the lock of a stopped process: %v, want %v", err, store.ErrBusy)
		}
		for range 20 {
			r := request("a third lock")
			mustAcquire(t, s, r)
			mustRelease(t, s, r)
		}
		kill(t, c)
	}
	mustAcquire(t, s, request("the lock"))
}

func init() { roles["leave a child"] = leaveChild }

// leaveChild acquires the lock and starts a child that inherits the tether.
func leaveChild(args []string) error {
	s, err := Open(context.Background(), urlOf(args[0]), nil)
	if err != nil {
		return err
	}
	r := request("the lock")
	r.TTL = time.Hour
	if _, err := s.Acquire(context.Background(), store.AcquireRequest{Lease: r}); err != nil {
		return err
	}
	tether, err := Tether(s)
	if err != nil {
		return err
	}
	p, err := os.StartProcess("/bin/sh", []string{"sh", "-c", "echo child; read x; exit 0"}, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr, tether}})
	if err != nil {
		return err
	}
	_, err = p.Wait()
	return err
}

// The lease of a process that was killed lasts while a child has inherited its flock, and no
// longer.
func TestTether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks")
	s := mustOpen(t, path, nil)
	c := start(t, "leave a child", path)
	c.line(t)
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Process.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("the lock")}); !errors.Is(err, store.ErrBusy) {
		t.Fatalf("acquire while the child lives: %v, want %v", err, store.ErrBusy)
	}
	r := request("the lock")
	done := waitFor(t, s, r)
	c.begin(t) // the child ends
	within(t, done, "after the end of the child")
	mustRelease(t, s, r)
}

// A lease that is not released when its store is closed lasts for its TTL.
func TestClosedWithALease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks")
	s, other := mustOpen(t, path, nil), mustOpen(t, path, nil)
	mustAcquire(t, s, request("a"))
	busy := func() {
		t.Helper()
		if _, err := other.Acquire(t.Context(), store.AcquireRequest{Lease: request("a")}); !errors.Is(err, store.ErrBusy) {
			t.Errorf("acquire: %v, want %v", err, store.ErrBusy)
		}
	}
	busy() // which opens the file of the other process
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	busy()
	other = mustOpen(t, path, nil)
	busy()
}

// A waiter is notified of a hand-off, and the holder of a break, through their bells.
func TestBells(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks")
	s, other := mustOpen(t, path, nil), mustOpen(t, path, nil)
	broken := make(chan string, 10)
	defer s.NotifyBroken(func(owner string) { broken <- owner })()
	holder, next := request("a"), request("a")
	mustAcquire(t, s, holder)
	done := waitFor(t, other, next)
	shown, stop := context.WithCancel(t.Context())
	defer stop()
	versions, err := pushing{engineOf(other).d}.Watch(shown, hex.EncodeToString([]byte("a")))
	if err != nil {
		t.Fatal(err)
	}
	before := <-versions
	mustRelease(t, s, holder)
	for after := before; after.Version == before.Version; { // a bell can ring twice for one write
		after = <-versions
	}
	within(t, done, "after a release")
	mustRelease(t, other, next)
	g := mustAcquire(t, s, holder)
	if _, err := other.BreakLease(t.Context(), store.BreakRequest{Name: "a", Owner: holder.Owner, Token: g.Token, By: "test", At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if owner := <-broken; owner != holder.Owner {
		t.Errorf("told of a break of %s, want %s", owner, holder.Owner)
	}
}

// What processes that were killed leave is removed by others in time.
func TestSessionsAreCleanedUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks")
	for range 3 {
		c := start(t, "hold", path, "1h")
		c.line(t)
		kill(t, c)
	}
	sessions := filepath.Join(path, sessionsDir)
	s := mustOpen(t, path, nil)
	mustAcquire(t, s, request("x"))
	names, err := readNames(sessions)
	if err != nil {
		t.Fatal(err)
	}
	dead := 0
	for _, name := range names {
		if strings.HasSuffix(name, deadSuffix) {
			dead++
			old := time.Now().Add(-25 * time.Hour)
			if err := os.Chtimes(filepath.Join(sessions, name), old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	if dead != 3 || len(names) != 5 {
		t.Errorf("%v, want three dead sessions, this one, and its bell", names)
	}
	mustAcquire(t, s, request("the lock")) // of a dead one
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, path, nil)
	mustAcquire(t, s, request("y"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if names, err := readNames(sessions); err != nil || len(names) > 0 {
		t.Errorf("%v is left (%v), want nothing", names, err)
	}
}

// Sessions that somebody removes are made again, and their processes are not taken for dead.
func TestSessionsAreRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks")
	s, other := mustOpen(t, path, nil), mustOpen(t, path, nil)
	r := request("a")
	mustAcquire(t, s, r)
	names, err := readNames(filepath.Join(path, sessionsDir))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.Remove(filepath.Join(path, sessionsDir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := other.Acquire(t.Context(), store.AcquireRequest{Lease: request("a")}); !errors.Is(err, store.ErrBusy) {
		t.Errorf("acquire: %v, want %v", err, store.ErrBusy)
	}
	old := engineOf(s).d.peers.own.Load()
	again := *old
	again.seen = time.Time{} // a second later
	engineOf(s).d.peers.own.Store(&again)
	if errs := s.Renew(t.Context(), []store.Lease{r}); errs[0] != nil {
		t.Fatal(errs[0])
	}
	if name := engineOf(s).d.peers.own.Load().name; name == old.name {
		t.Error("the session was not made again")
	}
	if _, err := other.Acquire(t.Context(), store.AcquireRequest{Lease: request("a")}); !errors.Is(err, store.ErrBusy) {
		t.Errorf("acquire: %v, want %v", err, store.ErrBusy)
	}
}

// A stranger that has the flock of a dead process, and one whose bell is full, hold up nobody.
func TestStrangersHoldUpNobody(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks")
	s := mustOpen(t, path, nil)
	held := request("the lock")
	held.TTL = time.Hour
	mustAcquire(t, s, held)
	stopped := start(t, "wait", path, "1h")
	stopped.line(t)
	if err := stopped.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for range 3000 { // more than its bell has room for
		engineOf(s).d.peers.ringAll(brokenPrefix + strings.Repeat("x", 60))
	}
	r := request("another")
	mustAcquire(t, s, r)
	mustRelease(t, s, r)
	if err := stopped.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	mustRelease(t, s, held)
	if line := stopped.line(t); line != "granted" {
		t.Errorf("the waiter prints %q, want granted", line)
	}
}

// A closed store leaves no file descriptor open.
func TestNoDescriptorIsLeft(t *testing.T) {
	open := func() int {
		entries, err := os.ReadDir("/dev/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	path := filepath.Join(t.TempDir(), "locks")
	round := func() {
		s, waits := mustOpen(t, path, nil), mustOpen(t, path, nil)
		holder, r := request("a"), request("a")
		mustAcquire(t, s, holder)
		done := waitFor(t, waits, r)
		mustRelease(t, s, holder)
		within(t, done, "after a release")
		mustRelease(t, waits, r)
		if _, err := Open(t.Context(), urlOf(path+" which is/not there"), nil); err == nil {
			t.Error("opened a folder in a missing directory")
		}
		if err := errors.Join(s.Close(), waits.Close()); err != nil {
			t.Fatal(err)
		}
	}
	round() // which may open descriptors that stay open
	before := open()
	for range 10 {
		round()
	}
	if after := open(); after > before {
		t.Errorf("%d descriptors after 10 rounds, want the %d of before", after, before)
	}
}
