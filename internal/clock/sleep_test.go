package clock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Sleep ends after the time it is given, or with its context.
func TestSleepEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if !clock.Sleep(t.Context(), time.Second) || time.Since(start) != time.Second {
			t.Errorf("slept for %v, want 1s", time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if clock.Sleep(ctx, time.Hour) || time.Since(start) != time.Minute+time.Second {
			t.Errorf("slept until %v, want false at 1m1s, when the context ends", time.Since(start))
		}
		if clock.Sleep(ctx, 0) {
			t.Error("Sleep with an ended context: true, want false")
		}
	})
}
