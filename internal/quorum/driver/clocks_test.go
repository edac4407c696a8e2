package driver

import (
	"log/slog"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// A jump ahead discounts a node for as long as a lease may last, also if all nodes jump by
// as much. A jump back does not. If our own clock can stand still and has caused the jump,
// no node is discounted.
func TestClocks(t *testing.T) {
	const hold = 10 * time.Second
	now := clock.Instant(time.Hour)
	var slept, set time.Duration // our own clock stood still for, our wall clock was set by
	c := NewClocks(3, hold, func() time.Duration { return slept + set }, slog.New(slog.DiscardHandler))
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
		t.Errorf("%d nodes are discounted at first", out)
	}
	ahead[1] += time.Second
	if err := look(1); err == nil || err.left > hold || err.left < hold-time.Second || (err.by-time.Second).Abs() > 50*time.Millisecond {
		t.Errorf("a node whose clock jumped by a second: %v", err)
	}
	ahead[2] -= time.Second
	if out := all(); out != 1 {
		t.Errorf("%d nodes are discounted after one jumped ahead and one back", out)
	}
	now = now.Add(hold)
	if out := all(); out != 0 {
		t.Errorf("%d nodes are discounted when every dropped lease is over", out)
	}
	sleep := func(d time.Duration) {
		slept += d
		for n := range ahead {
			ahead[n] += d
		}
	}
	sleep(time.Hour)
	if out := all(); out != 0 {
		t.Errorf("%d nodes are discounted after our own clock stood still for an hour", out)
	}
	sleep(time.Hour)
	ahead[1] += time.Minute
	if out := all(); out != 1 {
		t.Errorf("%d nodes are discounted after our own clock stood still and one node jumped meanwhile", out)
	}
	now = now.Add(hold)
	if set += time.Hour; all() != 0 {
		t.Errorf("nodes are discounted after our wall clock was set")
	}
	for n := range ahead {
		ahead[n] += time.Second
		look(n)
		now = now.Add(time.Second)
	}
	if out := all(); out != 3 {
		t.Errorf("%d nodes are discounted after each of them jumped by a second, one after the other", out)
	}
	now = now.Add(hold)
	if out := all(); out != 0 {
		t.Errorf("%d nodes are discounted when every dropped lease is over", out)
	}
}

// A time server sets several nodes one soon after the other. So a jump of most nodes does
// not show that our own clock stood still.
func TestClocksDiscountMostNodes(t *testing.T) {
	if out := oneJumpsAfterTheOther(); out != 3 {
		t.Errorf("%d of 3 nodes are discounted after each of them jumped", out)
	}
}

// oneJumpsAfterTheOther returns how many of three nodes are discounted after the clock of
// each of them has jumped.
func oneJumpsAfterTheOther() (out int) {
	now := clock.Instant(time.Hour)
	c := NewClocks(3, time.Minute, nil, slog.New(slog.DiscardHandler))
	var ahead [3]time.Duration
	look := func(node int) *jumpError {
		now = now.Add(time.Millisecond)
		return c.Observe(node, "n", now.Add(-time.Millisecond), now, now.Add(ahead[node]))
	}
	for n := range ahead {
		look(n)
	}
	for n := range ahead {
		now = now.Add(time.Second)
		ahead[n] += 10 * time.Second
		look(n)
	}
	for n := range ahead {
		if look(n) != nil {
			out++
		}
	}
	return out
}

// If our own clock cannot stand still, every jump is the node's.
func TestClocksNeverBlameABootClock(t *testing.T) {
	now := clock.Instant(time.Hour)
	c := NewClocks(3, time.Minute, nil, slog.New(slog.DiscardHandler))
	for _, ahead := range []time.Duration{0, time.Hour} {
		now = now.Add(time.Millisecond)
		for n := range 3 {
			if err := c.Observe(n, "n", now.Add(-time.Millisecond), now, now.Add(ahead)); (err != nil) != (ahead > 0) {
				t.Errorf("node %d, %v ahead: %v", n, ahead, err)
			}
		}
	}
}
