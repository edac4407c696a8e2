package etcdstore_test

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/etcdstore"
)

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
