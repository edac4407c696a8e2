package leasehold_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/clock"
	"github.com/leasehold-dev/leasehold/store/memstore"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// A clock can be written, for the client and for stores, with public names only.
type ownClock struct{}

func (ownClock) Now() clock.Instant { return 1 }

var _ = redisstore.Options{Clock: ownClock{}}

// The clock in the documentation of package clock moves with the bubble.
func TestClockOfABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		virtual := clock.Func(func() clock.Instant { return clock.Instant(1 + time.Since(began)) })
		c := leasehold.New(memstore.New(&memstore.Options{Clock: virtual}), &leasehold.Options{Clock: virtual})
		lock := c.Mutex("a").With(leasehold.LockOptions{TTL: time.Minute, NoRenew: true})
		l, err := lock.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if !errors.Is(l.Err(), leasehold.ErrLost) {
			t.Errorf("the lease is over: %v, want %v", l.Err(), leasehold.ErrLost)
		}
		next, err := lock.Try(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := next.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
