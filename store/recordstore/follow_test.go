package recordstore_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/virtual"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// reading counts the reads of a driver.
type reading struct {
	recordstore.Driver
	n atomic.Int64
}

func (d *reading) Read(ctx context.Context, key string) (recordstore.Item, error) {
	d.n.Add(1)
	return d.Driver.Read(ctx, key)
}

// A waiter looks less and less often while the holder renews its lease and others refresh their
// places, since that changes nothing for it; and as often as at first when the queue changes.
func TestRenewalsDoNotHastenLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := &server{}
		holder := open(s.driver(), nil, virtual.Clock())
		defer holder.Close()
		defer cancel() // before that, or a renewal could meet a closed store
		held := lease(time.Minute)
		if _, err := holder.Acquire(ctx, store.AcquireRequest{Lease: held}); err != nil {
			t.Fatal(err)
		}
		go func() {
			for tick := time.NewTicker(held.TTL / 3); ctx.Err() == nil; {
				select {
				case <-tick.C:
					if err := holder.Renew(ctx, []store.Lease{held})[0]; err != nil && ctx.Err() == nil {
						t.Error(err)
					}
				case <-ctx.Done():
				}
			}
		}()
		waits := func(d recordstore.Driver) {
			st := open(d, &recordstore.Options{Poll: time.Second}, virtual.Clock())
			t.Cleanup(func() { st.Close() })
			go st.Wait(ctx, store.WaitRequest{Lease: lease(time.Minute)}, nil)
			synctest.Wait()
		}
		d := &reading{Driver: s.driver()}
		waits(d)
		waits(s.driver())
		time.Sleep(10 * time.Minute)
		const most = 16 * 5 / 4 // seconds between two looks
		before := d.n.Load()
		time.Sleep(10 * time.Minute)
		if n := d.n.Load() - before; n < 10*60/most || n > 2*10*60/(16*3/4) {
			t.Errorf("%d reads in ten minutes of a waiter that has waited for ten minutes, want one in 16 s, and some after writes of others", n)
		}
		waits(s.driver()) // one more
		before = d.n.Load()
		time.Sleep((most + 20) * time.Second)
		if n := d.n.Load() - before; n < 15 {
			t.Errorf("%d reads in forty seconds after the queue has changed, want about twenty", n)
		}
	})
}

// unwatched is a driver that cannot watch.
type unwatched struct{ recordstore.Driver }

func (unwatched) Watch(context.Context, string) (<-chan recordstore.Item, error) {
	return nil, errors.New("no right to watch")
}

// The log says once why waiters poll, however often they do.
func TestWatchThatIsRefusedIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		s := open(unwatched{(&server{}).driver()}, &recordstore.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, virtual.Clock())
		held := lease(10 * time.Minute)
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: held}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := s.Wait(ctx, store.WaitRequest{Lease: lease(time.Minute)}, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		s.Close()
		if n := strings.Count(log.String(), "no right to watch"); n != 1 {
			t.Errorf("the log has it %d times, want once: %.300s", n, log.String())
		}
	})
}
