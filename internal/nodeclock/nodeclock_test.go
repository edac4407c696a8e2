package nodeclock

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// A clock that is as fast as ours to within 1 % is never seen to jump, however slow the
// network is. A clock that is set ahead or back is seen to jump at the next reply, by as much
// as it was set, less what the network can hide.
func TestWatch(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		some := func(most time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(most) + 1)) }
		speed := 1 + (rng.Float64()-0.5)/52 // less than 1 % off
		offset := some(time.Hour) - 30*time.Minute
		began := clock.Instant(time.Hour)
		now := began
		node := func() clock.Instant {
			return began.Add(time.Duration(float64(now.Sub(began))*speed) + offset)
		}
		var w Watch
		for range 100 {
			now = now.Add(some(some(10 * time.Second)))
			sent := now
			now = now.Add(some(20 * time.Millisecond))
			read := node()
			now = now.Add(some(20 * time.Millisecond))
			if rng.IntN(4) == 0 { // this process is stopped while the reply is on its way
				now = now.Add(some(10 * time.Second))
			}
			if j := w.Observe(sent, now, read); j != (Jump{}) {
				t.Fatalf("seed %d: a clock of speed %f is seen to jump by %v, want no jump", seed, speed, j)
			}
		}
		for _, by := range []time.Duration{time.Second, -time.Second, time.Hour} {
			offset += by
			sent := now
			now = now.Add(5 * time.Millisecond)
			read := node()
			j := w.Observe(sent, now, read)
			least, most := j.Least, j.Most
			if by < 0 {
				least, most = -least, -most
			}
			if true := by.Abs(); least <= 0 || least > true+time.Millisecond || most < true-time.Millisecond || most-least > 400*time.Millisecond {
				t.Fatalf("seed %d: a clock was set by %v and is seen to jump by %v", seed, by, j)
			}
			if j := w.Observe(now, now.Add(time.Millisecond), node()); j != (Jump{}) {
				t.Fatalf("seed %d: a jump was seen again: %v, want no jump", seed, j)
			}
			now = now.Add(time.Millisecond)
		}
	}
}

// A jump is caused by our own clock only if our wall clock has gained as much over the clock
// that may stand still.
func TestJumpIsOurs(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		what   string
		jump   Jump
		gained time.Duration
		want   bool
	}{
		{"the machine slept", Jump{10 * s, 11 * s}, 10500 * time.Millisecond, true},
		{"the machine slept for the least time possible", Jump{10 * s, 11 * s}, 10 * s, true},
		{"the machine slept for the longest time possible", Jump{10 * s, 11 * s}, 11 * s, true},
		{"the node was set", Jump{10 * s, 11 * s}, 0, false},
		{"the machine slept, and the node was set", Jump{10 * s, 11 * s}, 5 * s, false},
		{"our wall clock was set by more", Jump{10 * s, 11 * s}, 12 * s, false},
		{"our wall clock was set back by as much", Jump{10 * s, 11 * s}, -10 * s, false},
		{"both wall clocks were set back", Jump{-10 * s, -11 * s}, -10 * s, false},
		{"nothing happened", Jump{}, 0, false},
	} {
		if got := c.jump.Ours(c.gained); got != c.want {
			t.Errorf("%s: a jump of %v while our wall clock gained %v: ours %v, want %v", c.what, c.jump, c.gained, got, c.want)
		}
	}
}
