package leasehold_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

// The largest time.Duration means for ever: adding it to the present does not overflow into
// the past.
func TestForever(t *testing.T) {
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
				t.Errorf("the lease has %v and %v left, want no error and more than a second", l.Err(), left)
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
			t.Error("released before MinHold was over")
		}
	})
}
