package redisstore

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/cluster"
)

// sameSlot returns names of locks in one slot.
func sameSlot(n int) (names []string) {
	_, want := cluster.Place("a")
	for i := 0; len(names) < n; i++ {
		name := fmt.Sprint("a", i)
		if _, slot := cluster.Place(name); slot == want {
			names = append(names, name)
		}
	}
	return names
}

// While a master is down, a listing has the locks of the others, and says which it has not asked.
func TestListWithAMasterDown(t *testing.T) {
	t.Parallel() // it mostly waits
	c := redistest.StartCluster(t, 3, 0, "--cluster-require-full-coverage", "no", "--cluster-node-timeout", "1000")
	s, err := openClusterEngine(t.Context(), "redis-cluster://"+c.Masters[0].Addr(), &Options{NodeTimeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	gone, left := c.Masters[2], []string{}
	for i := range 20 {
		name := fmt.Sprint("list/", i)
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: stepsLease(name)}); err != nil {
			t.Fatal(err)
		}
		if c.Has(t, name) != gone {
			left = append(left, name)
		}
	}
	if len(left) == 0 || len(left) == 20 {
		t.Fatalf("one master has %d of 20 locks, want some", 20-len(left))
	}
	slices.Sort(left)
	gone.Kill()
	eventually.True(t, "the locks of the masters that are up are listed", func() bool {
		states, err := s.List(t.Context(), "list/")
		few, ok := errors.AsType[*store.QuorumError](err)
		if !ok || len(few.Nodes) != 3 || few.Need != 3 || few.Count(store.Granted) != 2 || !strings.Contains(err.Error(), gone.Addr()) {
			t.Fatalf("%v, want an error that names %s", err, gone.Addr())
		}
		var names []string
		for _, st := range states {
			names = append(names, st.Name)
		}
		return slices.Equal(names, left)
	})
}

// Releases that are sent as one list while their slot is being moved hand their locks over after
// the move, as single ones do.
func TestListInASlotBeingMoved(t *testing.T) {
	t.Parallel() // it mostly waits
	c := redistest.StartCluster(t, 3, 0)
	s, err := openClusterEngine(t.Context(), "redis-cluster://"+c.Masters[0].Addr(), &Options{NodeTimeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	names := sameSlot(2)
	from := c.Has(t, names[0])
	var waits [2]chan error
	var release []func()
	for i, name := range names {
		held, next := stepsLease(name), store.Lease{Name: name, Owner: store.NewOwnerAt(time.Now()), TTL: time.Minute}
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: held}); err != nil {
			t.Fatal(err)
		}
		waits[i] = make(chan error, 1)
		go func() {
			_, err := s.Wait(t.Context(), store.WaitRequest{Lease: next}, nil)
			waits[i] <- err
		}()
		eventually.True(t, "the waiter has a place", func() bool { return from.Text(t, "EXISTS", "{"+name+"}:place:"+next.Owner) == "1" })
		release = append(release, func() {
			if err := s.Release(t.Context(), store.ReleaseRequest{Lease: held}); err != nil {
				t.Errorf("release of %s: %v", name, err)
			}
		})
	}
	to := c.Masters[0]
	if to == from {
		to = c.Masters[1]
	}
	m := c.BeginMove(t, names[0], to)
	released := make(chan bool)
	go func() {
		defer close(released)
		_, slot := cluster.Place(names[0])
		together(t, s.r.MemberFor(slot), release...)
	}()
	eventually.True(t, "the list is refused", func() bool {
		select {
		case <-released:
			t.Fatal("the locks were released while their slot was being moved")
		default:
		}
		return strings.Contains(from.Text(t, "INFO", "errorstats")+to.Text(t, "INFO", "errorstats"), "TRYAGAIN")
	})
	m.End(t)
	<-released
	for i, done := range waits {
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("the wait for %s: %v", names[i], err)
			}
		case <-time.After(10 * time.Second): // the waiter asks by itself after twice that
			t.Errorf("the waiter for %s was not granted the lock", names[i])
		}
	}
}
