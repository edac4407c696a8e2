package zkstore

import (
	"bufio"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/zktest"
	"github.com/leasehold-dev/leasehold/store"
)

// startCurator starts threads of Curator that take turns at a lock. entered is called while
// one of them has it.
func startCurator(t *testing.T, name string, threads, turns int, entered func()) (end func()) {
	t.Helper()
	c, err := zktest.StartCurator("testdata/turns.bsh", shared.Addr, DefaultBase+"/"+name, fmt.Sprint(threads), fmt.Sprint(turns))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lines := bufio.NewScanner(c.Out); lines.Scan(); {
			switch lines.Text() {
			case "enter":
				entered()
				if _, err := fmt.Fprintln(c.In); err != nil {
					return // it was killed
				}
			case "done":
				return
			default:
				t.Logf("Curator: %s", lines.Text())
			}
		}
	}()
	return func() {
		t.Helper()
		select {
		case <-done:
		case <-time.After(2 * patience):
			t.Error("Curator's turns do not end")
		}
	}
}

// Six locks of Apache Curator and six of ours take turns, and never hold the lock at once.
func TestTurnsWithCuratorItself(t *testing.T) {
	t.Parallel() // it mostly waits
	const name, each, turns = "shared with Curator", 6, 8
	var room room
	var ours, theirs atomic.Int64
	// Ours begin when one of Curator's has the lock, so that both want it.
	begin := make(chan struct{})
	begins := sync.OnceFunc(func() { close(begin) })
	end := startCurator(t, name, each, turns, func() { begins(); room.enter(t, &theirs) })
	select {
	case <-begin:
	case <-time.After(patience):
		t.Fatal("Curator does not get a free lock")
	}
	var wg sync.WaitGroup
	for range each {
		s := mustOpen(t, &Options{servers: []string{shared.Addr}})
		wg.Go(func() { takeTurns(t, s, name, turns, func() { room.enter(t, &ours) }) })
	}
	wg.Wait()
	end()
	if ours.Load() != each*turns || theirs.Load() != each*turns {
		t.Errorf("this store had %d turns and Curator %d, want %d each", ours.Load(), theirs.Load(), each*turns)
	}
}

// Inspect shows a holder that uses Curator as foreign. Curator waits for a holder of this store,
// and this store for Curator. If Curator's process dies, the next waiter gets the lock once
// its session has ended.
func TestLockOfCurator(t *testing.T) {
	t.Parallel() // it mostly waits
	const name = "of Curator"
	s := mustOpen(t, &Options{servers: []string{shared.Addr}})
	l := request(name, 20*time.Second)
	first := mustAcquire(t, s, l)
	held, stays := make(chan struct{}), make(chan struct{})
	c, err := zktest.StartCurator("testdata/turns.bsh", shared.Addr, DefaultBase+"/"+name, "1", "1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	go func() {
		defer close(stays)
		for lines := bufio.NewScanner(c.Out); lines.Scan(); {
			if lines.Text() == "enter" {
				close(held)
			}
		}
	}()
	eventually.True(t, "Curator waits", func() bool { // its start may take longer than the lease
		if err := s.Renew(t.Context(), []store.Lease{l})[0]; err != nil {
			t.Fatal(err)
		}
		st, err := s.Inspect(t.Context(), name)
		return err == nil && len(st.Queue) == 1 && st.Queue[0].Holder.Foreign
	})
	select {
	case <-held:
		t.Fatal("Curator has a lock that this store holds")
	default:
	}
	mustRelease(t, s, l)
	select {
	case <-held:
	case <-time.After(patience):
		t.Fatal("Curator does not get the lock after the release")
	}
	st, err := s.Inspect(t.Context(), name)
	if err != nil || !st.Held || !st.Holder.Foreign || st.Token <= first.Token {
		t.Fatalf("inspect while Curator holds the lock: %+v, %v, want a foreign holder with a token above %v", st, err, first.Token)
	}
	next := request(name, 20*time.Second)
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: next}); err == nil {
		t.Fatal("granted a lock that Curator holds")
	}
	told, got := make(chan error, 100), make(chan error, 1)
	go func() {
		_, err := s.Wait(t.Context(), store.WaitRequest{Lease: next}, func(err error) { told <- err })
		got <- err
	}()
	<-told
	c.Close()
	<-stays
	select {
	case err := <-got:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(patience):
		t.Fatal("the waiter does not get the lock after Curator's process died")
	}
	mustRelease(t, s, next)
}
