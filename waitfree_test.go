package leasehold_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store"
)

func TestWaitFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		if err := b.other().Operator().WaitFree(t.Context(), "a", nil); err != nil {
			t.Fatalf("WaitFree of a free lock: %v", err)
		}
		held := b.acquire(b.c.Mutex("a"))
		start := time.Now()
		time.AfterFunc(time.Minute, func() { b.release(held) })
		reasons := 0
		err := b.other().Operator().WaitFree(t.Context(), "a", func(reason error) {
			reasons++
			var busy *leasehold.BusyError
			if !errors.As(reason, &busy) || busy.Holder.Owner != held.Owner() || busy.Name != "a" {
				t.Errorf("the reason to wait is %v, want a BusyError for a with holder %s", reason, held.Owner())
			}
		})
		if waited := time.Since(start); err != nil || waited < time.Minute || waited > time.Minute+250*time.Millisecond {
			t.Errorf("WaitFree: %v after %v, want nil shortly after 1m0s", err, waited)
		}
		if reasons == 0 || b.store.called("acquire") != 1 || b.held("a") {
			t.Errorf("%d calls of OnWait, want some; %d requests to acquire, want only that of the holder; held: %v, want free", reasons, b.store.called("acquire"), b.held("a"))
		}
	})
}

// WaitFree returns when the lease of a dead holder has expired, and not much later.
func TestWaitFreeAfterADeadHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		for i, kind := range []store.Kind{{}, store.Semaphore(2), store.ReadWrite} {
			name := string(rune('a' + i))
			if _, err := b.store.Engine.Acquire(t.Context(), store.AcquireRequest{Lease: store.Lease{Name: name, Owner: "dead", Kind: kind, TTL: 10 * time.Second}}); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			err := b.c.Operator().WaitFree(t.Context(), name, nil)
			if waited := time.Since(start); err != nil || waited < 10*time.Second || waited > 10*time.Second+10*time.Millisecond {
				t.Errorf("%v: %v after %v, want nil after 10s to 10.01s", kind, err, waited)
			}
		}
	})
}

func TestWaitFreeGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		held := b.acquire(b.c.Mutex("a"))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		err := b.other().Operator().WaitFree(ctx, "a", nil)
		if !errors.Is(err, leasehold.ErrBusy) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a wait that timed out: %v, want ErrBusy and DeadlineExceeded", err)
		}
		if err := b.c.Operator().WaitFree(t.Context(), "", nil); !errors.Is(err, leasehold.ErrInvalid) {
			t.Errorf("an empty name: %v, want ErrInvalid", err)
		}
		b.release(held)
		b.store.Engine.Close()
		if err := b.c.Operator().WaitFree(t.Context(), "a", nil); !errors.Is(err, store.ErrClosed) {
			t.Errorf("a closed store: %v, want ErrClosed", err)
		}
	})
}

func TestReleaseOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		for _, o := range []leasehold.LockOptions{
			{TTL: time.Minute, NoRenew: true, Purpose: "by hand"},
			{TTL: time.Minute, NoRenew: true, Owner: "me", Tries: 1},
		} {
			lease := b.acquire(b.c.Mutex("a").With(o))
			for _, owner := range []string{"other", lease.Owner() + "x"} {
				if err := b.other().Operator().ReleaseOwner(t.Context(), "a", owner); !errors.Is(err, leasehold.ErrLost) || !b.held("a") {
					t.Errorf("release of another owner, %s: %v, want ErrLost; held: %v, want true", owner, err, b.held("a"))
				}
			}
			if err := b.other().Operator().ReleaseOwner(t.Context(), "a", lease.Owner()); err != nil || b.held("a") {
				t.Errorf("release of the owner: %v; held: %v, want free", err, b.held("a"))
			}
			if err := b.other().Operator().ReleaseOwner(t.Context(), "a", lease.Owner()); !errors.Is(err, leasehold.ErrLost) {
				t.Errorf("a second release of the owner: %v, want ErrLost", err)
			}
			lease.Release(t.Context())
		}
		for _, bad := range [][2]string{{"a", ""}, {"a", "two words"}, {"", "me"}} {
			if err := b.c.Operator().ReleaseOwner(t.Context(), bad[0], bad[1]); !errors.Is(err, leasehold.ErrInvalid) {
				t.Errorf("name and owner %q: %v, want ErrInvalid", bad, err)
			}
		}
	})
}

// Of several holders, only the one that is named loses its lease.
func TestReleaseOwnerAmongSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		for _, owner := range []string{"one", "two"} {
			if _, err := b.store.Acquire(t.Context(), store.AcquireRequest{Lease: store.Lease{Name: "a", Owner: owner, Kind: store.Semaphore(2), TTL: time.Minute}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.c.Operator().ReleaseOwner(t.Context(), "a", "one"); err != nil {
			t.Fatal(err)
		}
		if st, err := b.store.Inspect(t.Context(), "a"); err != nil || len(st.Holders) != 1 || st.Holders[0].Holder.Owner != "two" {
			t.Errorf("Inspect: %+v, %v, want the one holder two", st, err)
		}
	})
}
