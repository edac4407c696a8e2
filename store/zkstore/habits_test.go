package zkstore

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gozk "github.com/go-zookeeper/zk"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/store"
)

// The tests here show habits of other clients that this store does not have, and states of
// the tree that come with them.

// Sequence numbers begin again when the node of a lock was removed, as servers do with
// empty ones. Tokens rise all the same.
func TestTokensRiseWhenNumbersBeginAgain(t *testing.T) {
	t.Parallel() // it mostly waits
	s := mustOpen(t, &Options{servers: []string{shared.Addr}})
	native := connect(t)
	const name = "numbers"
	var last store.Grant
	for i := range 3 {
		for range 3 {
			l := request(name, 10*time.Second)
			g := mustAcquire(t, s, l)
			if g.Token <= last.Token {
				t.Errorf("round %d: token %v after %v", i, g.Token, last.Token)
			}
			last = g
			mustRelease(t, s, l)
		}
		if err := native.Delete(DefaultBase+"/"+name, -1); err != nil {
			t.Fatal(err)
		}
	}
}

// If an administrator deletes all places of a lock, the holder learns so at its next
// renewal, a waiter's Wait ends, and the lock is free.
func TestPlacesAreDeleted(t *testing.T) {
	t.Parallel() // it mostly waits
	s := mustOpen(t, &Options{servers: []string{shared.Addr}})
	native := connect(t)
	const name = "deleted"
	l := request(name, 10*time.Second)
	first := mustAcquire(t, s, l)
	told, done := make(chan error, 100), make(chan error, 1)
	go func() {
		_, err := s.Wait(t.Context(), store.WaitRequest{Lease: request(name, 3*time.Second)}, func(err error) { told <- err })
		done <- err
	}()
	<-told
	names, _, err := native.Children(DefaultBase + "/" + name)
	if err != nil || len(names) != 2 {
		t.Fatalf("the places are %q (%v), want 2", names, err)
	}
	q := queueOf(names)
	for _, c := range []numbered{q[1], q[0]} { // the waiter's first, or it has the lock
		if err := native.Delete(DefaultBase+"/"+name+"/"+c.name, -1); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Renew(t.Context(), []store.Lease{l})[0]; !errors.Is(err, store.ErrNotHeld) {
		t.Errorf("renew a lease whose place is gone: %v, want %v", err, store.ErrNotHeld)
	}
	select {
	case err := <-done:
		if !errors.Is(err, store.ErrNotHeld) {
			t.Errorf("the wait ended with %v, want %v", err, store.ErrNotHeld)
		}
	case <-time.After(patience):
		t.Error("the wait of a waiter whose place is gone does not end")
	}
	next := request(name, 10*time.Second)
	if g := mustAcquire(t, s, next); g.Token <= first.Token {
		t.Errorf("token %v after %v", g.Token, first.Token)
	}
	mustRelease(t, s, next)
}

// A process that closes its store, or whose connection is lost, leaves its leases as they
// are: the session goes on. go-zookeeper ends the session when it is closed.
func TestLeasesOutliveTheStore(t *testing.T) {
	t.Parallel() // it mostly waits
	other := mustOpen(t, &Options{servers: []string{shared.Addr}})
	s, err := openEngine(t.Context(), &Options{servers: []string{shared.Addr}})
	if err != nil {
		t.Fatal(err)
	}
	l := request("outlives the store", 10*time.Second)
	mustAcquire(t, s, l)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Acquire(t.Context(), store.AcquireRequest{Lease: request(l.Name, l.TTL)}); !errors.Is(err, store.ErrBusy) {
		t.Errorf("acquire a lock that a closed store left held: %v, want %v", err, store.ErrBusy)
	}
	if err := other.Renew(t.Context(), []store.Lease{l})[0]; err != nil {
		t.Errorf("renew through another store: %v", err)
	}
	mustRelease(t, other, l)
}

// A lease that lasts longer than a renewal through another store asks for is kept in the session of
// its own TTL. The other leases of that store outlive it all the same.
func TestLeasesOutliveTheRenewalOfALongerOne(t *testing.T) {
	t.Parallel() // it mostly waits
	other := mustOpen(t, &Options{servers: []string{shared.Addr}})
	s, err := openEngine(t.Context(), &Options{servers: []string{shared.Addr}})
	if err != nil {
		t.Fatal(err)
	}
	long, short := request("a longer lease", 34*time.Second), request("beside a longer lease", 20*time.Second)
	mustAcquire(t, other, long)
	renewal := long
	renewal.TTL = short.TTL
	if err := s.Renew(t.Context(), []store.Lease{renewal})[0]; err != nil {
		t.Fatalf("renew through another store: %v", err)
	}
	mustAcquire(t, s, short)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, l := range []store.Lease{long, short} {
		if _, err := other.Acquire(t.Context(), store.AcquireRequest{Lease: request(l.Name, l.TTL)}); !errors.Is(err, store.ErrBusy) {
			t.Errorf("acquire %q, which a closed store left held: %v, want %v", l.Name, err, store.ErrBusy)
		}
		mustRelease(t, other, l)
	}
}

// A waiter that gives up while no server can be reached leaves no place behind. go-zookeeper
// cannot be told to give up at all.
func TestWaiterGivesUpWithoutNetwork(t *testing.T) {
	t.Parallel() // it mostly waits
	p := faultproxy.New(t, shared.Addr)
	s := mustOpen(t, &Options{servers: []string{p.Addr()}})
	native := connect(t)
	l := request("gives up waiting", 20*time.Second)
	mustAcquire(t, s, l)
	ctx, cancel := context.WithCancel(t.Context())
	told, done := make(chan error, 100), make(chan error, 1)
	go func() {
		_, err := s.Wait(ctx, store.WaitRequest{Lease: request(l.Name, l.TTL)}, func(err error) { told <- err })
		done <- err
	}()
	<-told
	p.RefuseNew()
	p.Cut()
	cancel()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the wait ended with %v, want %v", err, context.Canceled)
		}
	case <-time.After(patience):
		t.Fatal("the wait does not end with its context")
	}
	p.Pass()
	eventually.True(t, "only the holder's place is left", func() bool {
		names, _, err := native.Children(DefaultBase + "/" + l.Name)
		return err == nil && len(names) == 1
	})
	mustRelease(t, s, l)
}

// Two holders in one process exclude each other, and so do two processes with one identity.
func TestOneSessionExcludesItself(t *testing.T) {
	t.Parallel() // it mostly waits
	auth := []Identity{{"digest", "same:same"}}
	a := mustOpen(t, &Options{servers: []string{shared.Addr}, Base: "/same", Auth: auth})
	b := mustOpen(t, &Options{servers: []string{shared.Addr}, Base: "/same", Auth: auth})
	l := request("itself", 10*time.Second)
	mustAcquire(t, a, l)
	for _, s := range []*engine{a, b} {
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request(l.Name, l.TTL)}); !errors.Is(err, store.ErrBusy) {
			t.Errorf("acquire a lock that another owner holds: %v, want %v", err, store.ErrBusy)
		}
	}
	mustRelease(t, a, l)
}

func hasLine(text, line string) bool {
	return slices.Contains(strings.Split(text, "\n"), line)
}

// A release wakes one waiter, whatever the number of them.
func TestReleaseWakesOneWaiter(t *testing.T) {
	t.Parallel() // it mostly waits
	s := mustOpen(t, &Options{servers: []string{shared.Addr}})
	native := connect(t)
	const name, waiters = "herd", 8
	l := request(name, 20*time.Second)
	mustAcquire(t, s, l)
	var wg sync.WaitGroup
	for range waiters {
		wg.Go(func() {
			r := store.WaitRequest{Lease: request(name, 20*time.Second)}
			if _, err := s.Wait(t.Context(), r, nil); err != nil {
				t.Errorf("wait: %v", err)
				return
			}
			if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r.Lease}); err != nil {
				t.Errorf("release: %v", err)
			}
		})
	}
	watched := func() (n int) {
		text, err := askWord(t.Context(), shared.Addr, "wchp")
		if err != nil {
			t.Fatal(err)
		}
		names, _, err := native.Children(DefaultBase + "/" + name)
		if err != nil && !errors.Is(err, gozk.ErrNoNode) {
			t.Fatal(err)
		}
		for _, c := range names {
			if hasLine(text, DefaultBase+"/"+name+"/"+c) {
				n++
			}
		}
		return n
	}
	// Each place but the last is watched, by the one behind it, and the lock's node by none.
	eventually.True(t, "each waiter watches one place", func() bool { return watched() == waiters })
	text, err := askWord(t.Context(), shared.Addr, "wchp")
	if err != nil || hasLine(text, DefaultBase+"/"+name) {
		t.Errorf("the node of the lock is watched, want none to watch it (%v)", err)
	}
	mustRelease(t, s, l)
	wg.Wait()
}
