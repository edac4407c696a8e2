package synclocker_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/adapters/synclocker"
	"github.com/leasehold-dev/leasehold/internal/testenv/adaptertest"
	"github.com/leasehold-dev/leasehold/internal/testenv/virtual"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Code that takes a sync.Locker excludes the same code of another client.
func TestExcludes(t *testing.T) {
	st := memstore.New(nil)
	defer st.Close()
	lost := func(err error) { t.Error(err) }
	n := 0 // guarded by the lock alone
	var all sync.WaitGroup
	for range 4 {
		locker := sync.Locker(synclocker.New(leasehold.New(st, nil).Mutex("a"), lost))
		for range 3 {
			all.Go(func() {
				for range 20 {
					locker.Lock()
					n++
					locker.Unlock()
				}
			})
		}
	}
	all.Wait()
	if n != 4*3*20 {
		t.Errorf("counted to %d, want %d", n, 4*3*20)
	}
}

// A sync.Cond works on it.
func TestCond(t *testing.T) {
	st := memstore.New(nil)
	defer st.Close()
	cond := sync.NewCond(synclocker.New(leasehold.New(st, nil).Mutex("a"), func(err error) { t.Error(err) }))
	ready := false
	go func() {
		cond.L.Lock()
		ready = true
		cond.L.Unlock()
		cond.Signal()
	}()
	cond.L.Lock()
	for !ready {
		cond.Wait()
	}
	cond.L.Unlock()
}

// The function is called once for a loss, and for nothing else.
func TestLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := virtual.Clock()
		st := memstore.New(&memstore.Options{Clock: now})
		defer st.Close()
		client := leasehold.New(st, &leasehold.Options{Clock: now})
		var lost []error
		locker := synclocker.New(client.Mutex("a").With(leasehold.LockOptions{MaxHold: time.Minute}), func(err error) { lost = append(lost, err) })
		locker.Lock()
		time.Sleep(time.Second)
		locker.Unlock()
		synctest.Wait()
		if len(lost) != 0 {
			t.Errorf("the function was called with %v without a loss", lost)
		}
		locker.Lock()
		time.Sleep(2 * time.Minute)
		locker.Unlock()
		synctest.Wait()
		if len(lost) != 1 || !errors.Is(lost[0], leasehold.ErrLost) {
			t.Errorf("the function was called with %v, want one loss", lost)
		}
	})
}

// While the store cannot be reached, Lock goes on, and Unlock returns.
func TestStoreGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := virtual.Clock()
		far := adaptertest.NewCut(t, now)
		locker := synclocker.New(leasehold.New(far.Store, &leasehold.Options{Clock: now}).Mutex("a"), func(err error) { t.Error(err) })
		far.Down.Store(true)
		locked := false
		go func() {
			locker.Lock()
			locked = true
		}()
		time.Sleep(time.Minute)
		synctest.Wait()
		if locked {
			t.Error("Lock returned without a store, want it to wait")
		}
		far.Down.Store(false)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !locked {
			t.Fatal("Lock has not returned 2s after the store was back, want it to")
		}
		far.Down.Store(true)
		locker.Unlock()
		far.Down.Store(false)
		locker.Lock() // after the TTL at the latest
		defer locker.Unlock()
	})
}

// The unlock of a lock that was lost does not release it for the goroutine of the same
// process that has it now.
func TestLostAndLockedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := virtual.Clock()
		st := memstore.New(&memstore.Options{Clock: now})
		defer st.Close()
		client := leasehold.New(st, &leasehold.Options{Clock: now})
		losses := 0
		locker := synclocker.New(client.Mutex("a").With(leasehold.LockOptions{MaxHold: time.Minute}), func(error) { losses++ })
		locker.Lock()
		time.Sleep(2 * time.Minute)
		locker.Lock()
		synctest.Wait()
		locker.Unlock() // of the first
		if state, err := st.Inspect(t.Context(), "a"); err != nil || !state.Held {
			t.Errorf("after the unlock of the lost lease the lock is %+v (%v), want it held", state, err)
		}
		time.Sleep(2 * time.Minute) // the second is watched, too
		locker.Unlock()
		synctest.Wait()
		if losses != 2 {
			t.Errorf("the function was called for %d losses, want 2", losses)
		}
	})
}

// Errors that Lock and Unlock cannot return are panics.
func TestPanics(t *testing.T) {
	st := memstore.New(nil)
	c := leasehold.New(st, nil)
	ignore := func(error) {}
	panics(t, "no function", func() { synclocker.New(c.Mutex("a"), nil) })
	panics(t, "invalid name", func() { synclocker.New(c.Mutex(""), ignore).Lock() })
	l := synclocker.New(c.Mutex("a"), ignore)
	panics(t, "not locked", l.Unlock)
	l.Lock()
	if _, err := c.Mutex("a").Try(t.Context()); !errors.Is(err, leasehold.ErrBusy) {
		t.Errorf("while it is locked: %v, want %v", err, leasehold.ErrBusy)
	}
	l.Unlock()
	panics(t, "unlocked once", l.Unlock)
	st.Close()
	panics(t, "closed store", l.Lock)
}

func panics(t *testing.T, name string, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s: no panic, want one", name)
		}
	}()
	f()
}

func Example() {
	st := memstore.New(nil)
	defer st.Close()

	lock := leasehold.New(st, nil).Mutex("catalog")
	locker := synclocker.New(lock, func(err error) {
		panic(err) // rather end the process than have two writers
	})
	locker.Lock()
	defer locker.Unlock()
	fmt.Println("locked", lock.Name())
	// Output: locked catalog
}
