package recordstore_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/virtual"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// bounded is a driver whose records have 20 KiB at most.
type bounded struct{ recordstore.Driver }

func (bounded) MaxLen() int { return 20 << 10 }

func (d bounded) Write(ctx context.Context, key string, value []byte, version string, idle bool) (string, error) {
	if len(value) > d.MaxLen() {
		return "", recordstore.Refusal("%d bytes", len(value))
	}
	time.Sleep(5 * time.Millisecond)
	return d.Driver.Write(ctx, key, value, version, idle)
}

// A crowd that is too large for the record of a lock costs its holder nothing, nor those that have a
// place: only the rest is refused.
func TestCrowdTooLargeForARecord(t *testing.T) {
	for _, crowd := range []string{"in the holder's process", "in another process"} {
		synctest.Test(t, func(t *testing.T) {
			srv := &server{class: store.CrashSafe}
			open := func() *store.Store {
				s := recordstore.New(bounded{srv.driver()}, nil)
				recordstore.SetClock(s, virtual.Clock())
				t.Cleanup(func() { s.Close() })
				return s
			}
			lease := func() store.Lease {
				return store.Lease{Name: "x", Owner: store.NewOwner(), TTL: 15 * time.Second, Meta: store.Holder{Host: "a-host", PID: 12345, Purpose: "some purpose"}.Encode()}
			}
			holder := open()
			waiter := holder
			if crowd == "in another process" {
				waiter = open()
			}
			held := lease()
			if _, err := holder.Acquire(t.Context(), store.AcquireRequest{Lease: held}); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			var granted, refused atomic.Int64
			var wg sync.WaitGroup
			for i := range 400 {
				wg.Go(func() {
					time.Sleep(time.Duration(i) * 7 * time.Millisecond)
					l := lease()
					_, err := waiter.Wait(ctx, store.WaitRequest{Lease: l}, nil)
					switch {
					case err == nil:
						granted.Add(1)
						err = waiter.Release(t.Context(), store.ReleaseRequest{Lease: l})
					case errors.Is(err, store.ErrQuorum) && strings.Contains(err.Error(), "so many holders and waiters"):
						refused.Add(1)
						return
					}
					if err != nil {
						t.Errorf("%s: %v", crowd, err)
					}
				})
			}
			for range 8 {
				time.Sleep(held.TTL / 3)
				if err := holder.Renew(t.Context(), []store.Lease{held})[0]; err != nil {
					t.Errorf("%s: %v", crowd, err)
				}
			}
			if _, err := holder.Acquire(t.Context(), store.AcquireRequest{Lease: lease()}); err == nil || errors.Is(err, store.ErrBusy) {
				t.Errorf("%s: an owner for whom there is no room is told %v, want that there is none", crowd, err)
			}
			if err := holder.Release(t.Context(), store.ReleaseRequest{Lease: held}); err != nil {
				t.Errorf("%s: %v", crowd, err)
			}
			wg.Wait()
			if granted, refused := granted.Load(), refused.Load(); granted < 50 || granted+refused != 400 {
				t.Errorf("%s: %d had the lock in turn and %d were refused, want 50 at least, and the rest", crowd, granted, refused)
			}
		})
	}
}
