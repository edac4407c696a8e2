package driver

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// A node whose clock jumps ahead is discounted for as long as a lease may last, also if all
// nodes jump by as much. A jump back does not discount it. If our own clock can stand still
// and has caused the jump, no node is discounted.
func TestClocks(t *testing.T) {
	const hold = 10 * time.Second
	now := clock.Instant(time.Hour)
	var slept, set time.Duration // how long our own clock stood still, and by how much our wall clock was set
	c := NewClocks(3, func(clock.Instant) time.Duration { return hold }, func() time.Duration { return slept + set }, slog.New(slog.DiscardHandler))
	var ahead [3]time.Duration
	observe := func(node int) *jumpError {
		now = now.Add(time.Millisecond)
		return c.Observe(node, "n", now.Add(-time.Millisecond), now, now.Add(ahead[node]))
	}
	discounted := func() (out int) {
		for n := range ahead {
			if observe(n) != nil {
				out++
			}
		}
		return out
	}
	if out := discounted(); out != 0 {
		t.Errorf("%d nodes are discounted at first, want none", out)
	}
	ahead[1] += time.Second
	if err := observe(1); err == nil || err.left > hold || err.left < hold-time.Second || (err.by-time.Second).Abs() > 50*time.Millisecond {
		t.Errorf("a node whose clock jumped by a second: %v, want it discounted for about %v", err, hold)
	}
	ahead[2] -= time.Second
	if out := discounted(); out != 1 {
		t.Errorf("%d nodes are discounted after one jumped ahead and one back, want 1", out)
	}
	now = now.Add(hold)
	if out := discounted(); out != 0 {
		t.Errorf("%d nodes are discounted after the longest lease that they may have dropped, want none", out)
	}
	sleep := func(d time.Duration) {
		slept += d
		for n := range ahead {
			ahead[n] += d
		}
	}
	sleep(time.Hour)
	if out := discounted(); out != 0 {
		t.Errorf("%d nodes are discounted after our own clock stood still for an hour, want none", out)
	}
	sleep(time.Hour)
	ahead[1] += time.Minute
	if out := discounted(); out != 1 {
		t.Errorf("%d nodes are discounted after our own clock stood still and one node jumped meanwhile, want 1", out)
	}
	now = now.Add(hold)
	if set += time.Hour; discounted() != 0 {
		t.Error("nodes are discounted after our wall clock was set, want none")
	}
	for n := range ahead {
		ahead[n] += time.Second
		observe(n)
		now = now.Add(time.Second)
	}
	if out := discounted(); out != 3 {
		t.Errorf("%d nodes are discounted after each of them jumped by a second, one after the other, want 3", out)
	}
	now = now.Add(hold)
	if out := discounted(); out != 0 {
		t.Errorf("%d nodes are discounted after the longest lease that they may have dropped, want none", out)
	}
}

// A time server sets several nodes soon after each other. So a jump of most nodes does not
// show that our own clock stood still.
func TestClocksDiscountMostNodes(t *testing.T) {
	if out := oneJumpsAfterTheOther(); out != 3 {
		t.Errorf("%d nodes are discounted after each of them jumped, want 3", out)
	}
}

// oneJumpsAfterTheOther returns how many of three nodes are discounted after the clock of
// each of them has jumped.
func oneJumpsAfterTheOther() (out int) {
	now := clock.Instant(time.Hour)
	c := NewClocks(3, func(clock.Instant) time.Duration { return time.Minute }, nil, slog.New(slog.DiscardHandler))
	var ahead [3]time.Duration
	observe := func(node int) *jumpError {
		now = now.Add(time.Millisecond)
		return c.Observe(node, "n", now.Add(-time.Millisecond), now, now.Add(ahead[node]))
	}
	for n := range ahead {
		observe(n)
	}
	for n := range ahead {
		now = now.Add(time.Second)
		ahead[n] += 10 * time.Second
		observe(n)
	}
	for n := range ahead {
		if observe(n) != nil {
			out++
		}
	}
	return out
}

// If our own clock cannot stand still, as on Linux, every jump is the node's, even if our
// wall clock jumps by as much at the same moment.
func TestClocksNeverBlameABootClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in which the wall clock only moves as the test says
		now, set := clock.Instant(time.Hour), time.Duration(0)
		ours := WallAhead(clock.Func(func() clock.Instant { return now.Add(-set) }))
		c := NewClocks(3, func(clock.Instant) time.Duration { return time.Minute }, ours, slog.New(slog.DiscardHandler))
		for _, ahead := range []time.Duration{0, time.Hour} {
			now, set = now.Add(time.Millisecond), ahead
			for n := range 3 {
				err := c.Observe(n, "n", now.Add(-time.Millisecond), now, now.Add(ahead))
				if want := ahead > 0 && clock.CountsSuspend; (err != nil) != want {
					t.Errorf("node %d, %v ahead as our wall clock: %v, want it discounted: %v", n, ahead, err, want)
				}
			}
		}
	})
}
