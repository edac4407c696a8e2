package leasehold_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

// The longest time there is means for ever, not long ago.
func TestForever(t *testing.T) {
	const forever = time.Duration(math.MaxInt64)
	for name, o := range map[string]leasehold.LockOptions{
		"MaxHold": {MaxHold: forever},
		"TTL":     {TTL: forever},
		"both":    {TTL: forever, MaxHold: forever},
	} {
		t.Run(name, func(t *testing.T) {
			c := leasehold.New(memstore.New(nil), nil)
			l, err := c.Mutex("stock").With(o).Try(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if left := time.Until(l.Deadline()); l.Err() != nil || left < time.Second {
				t.Errorf("%v, %v left", l.Err(), left)
			}
			if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("MinHold", func(t *testing.T) {
		c := leasehold.New(memstore.New(nil), nil)
		l, err := c.Mutex("stock").With(leasehold.LockOptions{MinHold: forever}).Try(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := l.Release(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if ctx.Err() == nil {
			t.Error("released before its time")
		}
	})
}
