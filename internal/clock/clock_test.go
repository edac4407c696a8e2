package clock

import (
	"math"
	"testing"
	"time"
)

// Add saturates instead of overflowing.
func TestAdd(t *testing.T) {
	const forever = time.Duration(math.MaxInt64)
	for _, c := range []struct {
		i    Instant
		d    time.Duration
		want Instant
	}{
		{5, 3, 8}, {5, -7, -2}, {5, 0, 5}, {0, forever, math.MaxInt64},
		{1, forever, math.MaxInt64}, {math.MaxInt64, 1, math.MaxInt64}, {math.MaxInt64 - 1, 1, math.MaxInt64},
		{math.MaxInt64, -1, math.MaxInt64 - 1}, {-5, forever, math.MaxInt64 - 5},
	} {
		if got := c.i.Add(c.d); got != c.want {
			t.Errorf("%d + %d = %d, want %d", c.i, c.d, got, c.want)
		}
	}
}
