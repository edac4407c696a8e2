package majority

import (
	"log/slog"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// A jump ahead keeps a node out for as long as a lease may last; a jump back, or
// one that most nodes make at the same time, which then is ours, keeps nobody.
func TestClocks(t *testing.T) {
	const hold = 10 * time.Second
	now := clock.Instant(time.Hour)
	c := NewClocks(3, hold, slog.New(slog.DiscardHandler))
	var ahead [3]time.Duration
	look := func(node int) *jumpError {
		now = now.Add(time.Millisecond)
		return c.Observe(node, "n", now.Add(-time.Millisecond), now, now.Add(ahead[node]))
	}
	all := func() (out int) {
		for n := range ahead {
			if look(n) != nil {
				out++
			}
		}
		return out
	}
	if out := all(); out != 0 {
		t.Errorf("%d nodes are out at first", out)
	}
	ahead[1] += time.Second
	if err := look(1); err == nil || err.left > hold || err.left < hold-time.Second || (err.by-time.Second).Abs() > 50*time.Millisecond {
		t.Errorf("a node that jumped by a second: %v", err)
	}
	ahead[2] -= time.Second
	if out := all(); out != 1 {
		t.Errorf("%d nodes are out after one jumped ahead and one back", out)
	}
	now = now.Add(hold)
	if out := all(); out != 0 {
		t.Errorf("%d nodes are out when every lease that was dropped is over", out)
	}
	for n := range ahead {
		ahead[n] += time.Hour
	}
	all()
	if out := all(); out != 0 {
		t.Errorf("%d nodes are out after our own clock stood still for an hour", out)
	}
}
