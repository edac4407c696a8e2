//go:build unix

package filestore

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store"
)

// anHour is longer than any test waits.
const anHour = time.Hour

// needsSockets skips the test on a system whose sockets cannot have paths as long as the
// store's; see address.
func needsSockets(t *testing.T, s *Store) {
	t.Helper()
	if _, _, err := address(s.push.dir, strings.Repeat("x", socketName)); err != nil {
		t.Skip(err)
	}
}

// holds acquires a lock.
func holds(t *testing.T, c *leasehold.Client, ttl time.Duration) *leasehold.Lease {
	t.Helper()
	lease, err := c.Mutex("a").With(leasehold.LockOptions{TTL: ttl}).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// breaks breaks the lease through by, and returns how long after that its holder was notified.
func breaks(t *testing.T, lease *leasehold.Lease, by *leasehold.Client) (told time.Duration) {
	t.Helper()
	start := time.Now()
	released := make(chan struct{})
	go func() {
		defer close(released)
		<-lease.Done()
		told = time.Since(start)
		if err := lease.Release(t.Context()); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("release: %v", err)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := by.Break(ctx, leasehold.BreakRequest{Name: lease.Name(), Token: lease.Token(), Reason: "it hangs"}); err != nil {
		t.Fatal(err)
	}
	<-released
	return told
}

// The holder is notified of a break at once. A socket that somebody removes is back with the
// next renewal.
func TestBreakIsPushed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	s := mustOpen(t, path, nil)
	needsSockets(t, s)
	holder, by := leasehold.New(s, nil), leasehold.New(mustOpen(t, path, nil), nil)
	if told := breaks(t, holds(t, holder, anHour), by); told > anHour/4 {
		t.Errorf("told after %v", told)
	}
	lease := holds(t, holder, anHour)
	if err := os.RemoveAll(s.push.dir); err != nil {
		t.Fatal(err)
	}
	if err := lease.Extend(t.Context()); err != nil {
		t.Fatal(err)
	}
	if told := breaks(t, lease, by); told > anHour/4 {
		t.Errorf("after the socket was removed: told after %v", told)
	}
}

// Without a socket the holder learns of a break when it renews.
func TestBreakIsNotPushed(t *testing.T) {
	t.Parallel() // it mostly waits
	path := filepath.Join(t.TempDir(), "locks.db")
	s := mustOpen(t, path, nil)
	if err := os.WriteFile(s.push.dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	holder, by := leasehold.New(s, nil), leasehold.New(mustOpen(t, path, nil), nil)
	breaks(t, holds(t, holder, 3*time.Second), by)
}

// Processes that are stopped do not read their sockets. However many they are, the others are
// told.
func TestBreakBesideStoppedProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	s, other := mustOpen(t, path, nil), mustOpen(t, path, nil)
	needsSockets(t, s)
	told := make(chan string, 1)
	defer s.NotifyBroken(func(owner string) { told <- owner })()
	l := request("a")
	mustAcquire(t, s, l)
	for range 200 {
		addr, done, err := address(s.push.dir, strings.ToLower(rand.Text()[:socketName]))
		if err != nil {
			t.Fatal(err)
		}
		stopped, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: addr, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		defer stopped.Close()
		done()
	}
	for range 20 { // more than all buffers take
		other.push.sendAll(message{Broken: l.Owner})
		select {
		case <-told:
		case <-time.After(time.Minute):
			t.Fatal("the holder is not told")
		}
	}
}

// A waiter that finds that its turn has come, and that its lease was broken since, gets no
// lock, and keeps nobody waiting.
func TestBreakBeforeTheWaiterNotices(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	s, other := mustOpen(t, path, nil), mustOpen(t, path, nil)
	held, l := request("a"), request("a")
	held.Kind, held.Weight = store.Semaphore(2), 2
	l.Kind, l.Weight = held.Kind, held.Weight
	mustAcquire(t, other, held)
	waits, broken, done := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		_, err := s.Wait(t.Context(), store.WaitRequest{Lease: l}, func(error) {
			select {
			case <-broken:
			default:
				close(waits)
				<-broken // the process is stopped
			}
		})
		done <- err
	}()
	<-waits
	mustRelease(t, other, held)
	st, err := other.Inspect(t.Context(), "a")
	if err != nil || st.Holder.Owner != l.Owner {
		t.Fatalf("inspect: %+v, %v, want the waiter to hold the lock", st, err)
	}
	if _, err := other.BreakLease(t.Context(), store.BreakRequest{Name: "a", Owner: l.Owner, Token: st.Token}); err != nil {
		t.Fatal(err)
	}
	close(broken)
	if err := <-done; !errors.Is(err, store.ErrNotHeld) {
		t.Errorf("the waiter: %v, want an error that matches store.ErrNotHeld", err)
	}
	poll(t, "the lock is free", func() bool {
		_, err := other.Acquire(t.Context(), store.AcquireRequest{Lease: held})
		return err == nil
	})
}

// A process has one socket once it holds a lock and has somebody to tell of a break, and
// none before.
func TestSocketsOfHolders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	s := mustOpen(t, path, nil)
	needsSockets(t, s)
	wants := func(when string, want int) {
		t.Helper()
		entries, err := os.ReadDir(s.push.dir)
		if err != nil && !errors.Is(err, os.ErrNotExist) || len(entries) != want {
			t.Errorf("%s: %d sockets, %v, want %d", when, len(entries), err, want)
		}
	}
	first := request("a")
	mustAcquire(t, s, first)
	wants("nobody is to be told", 0)
	s.NotifyBroken(func(string) {})
	if _, err := s.Inspect(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	wants("it only looked", 0)
	if err := s.Renew(t.Context(), []store.Lease{first})[0]; err != nil {
		t.Fatal(err)
	}
	mustAcquire(t, s, request("b"))
	wants("it holds locks", 1)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	wants("it is closed", 0)
}
