package etcdstore_test

import (
	"crypto/rand"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/etcdtest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/etcdstore"
)

// A cluster can allow fewer operations in a transaction than it does by default. A process with many
// leases keeps them, waiters of one lock have their turn, and steps go together.
func TestFewOperationsInATransaction(t *testing.T) {
	t.Parallel()
	c := launch(t, etcdtest.Options{Args: []string{"--max-txn-ops=16"}})
	s := open(t, c.Endpoints(), etcdstore.Options{Timeout: patience})
	var leases []store.Lease
	for i := range 40 {
		l := request(fmt.Sprint(i), time.Minute)
		acquire(t, s, l)
		leases = append(leases, l)
	}
	for range 40 {
		l := as(request("permits", time.Minute), store.Semaphore(100), 1)
		acquire(t, s, l)
		leases = append(leases, l)
	}
	renewed(t, "many leases", open(t, c.Endpoints(), etcdstore.Options{Timeout: patience}), leases[:40])
	renewed(t, "many leases", s, leases)
	held := writer("read by many", time.Minute)
	acquire(t, s, held)
	var readers []<-chan error
	for range 20 {
		readers = append(readers, waits(t, s, reader("read by many", time.Minute)))
	}
	release(t, s, held)
	for _, done := range readers {
		gets(t, "a reader", done)
	}
	etcdstore.SendTogether(s)
	var group sync.WaitGroup
	for i := range 100 {
		group.Go(func() {
			l := request(fmt.Sprint("together", i), time.Minute)
			if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

// A holder that came before a semaphore was made smaller can have a slot that there is not any more.
// It is handed to nobody.
func TestSlotsAfterResize(t *testing.T) {
	prefix := "smaller-" + rand.Text()
	s := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix})
	five, two := store.Semaphore(5), store.Semaphore(2)
	var held []store.Lease
	for i := range 5 {
		l := as(request("a", time.Minute), five, 1)
		if g := acquire(t, s, l); g.Slot != int64(i) {
			t.Fatalf("slot %d, want %d", g.Slot, i)
		}
		l.Kind = two
		held = append(held, l)
	}
	if err := s.Resize(t.Context(), "a", five, two); err != nil {
		t.Fatal(err)
	}
	for _, l := range held[:3] {
		release(t, s, l)
	}
	type result struct {
		g   store.Grant
		err error
	}
	done, told := make(chan result, 2), make(chan struct{}, 1000)
	for range 2 {
		go func() {
			g, err := s.Wait(t.Context(), store.WaitRequest{Lease: as(request("a", time.Minute), two, 1)}, func(error) { told <- struct{}{} })
			done <- result{g, err}
		}()
		<-told
	}
	slots := make(map[int64]bool)
	other := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix}) // it reads the lock before it releases it
	for _, l := range held[3:] {
		release(t, other, l)
		got := <-done
		if got.err != nil {
			t.Fatal(got.err)
		}
		slots[got.g.Slot] = true
	}
	if !slots[0] || !slots[1] {
		t.Errorf("slots %v, want 0 and 1", slots)
	}
}
