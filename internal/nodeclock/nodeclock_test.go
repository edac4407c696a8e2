package nodeclock

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// A clock that is as fast as ours to within 1 % never jumps, however slow the
// network is; one that is set ahead or back is found out at the next answer, by
// no more than it was set and no less than what the network hides.
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
			if d := w.Observe(sent, now, read); d != 0 {
				t.Fatalf("seed %d: a clock of speed %f jumped %v", seed, speed, d)
			}
		}
		for _, by := range []time.Duration{time.Second, -time.Second, time.Hour} {
			offset += by
			sent := now
			now = now.Add(5 * time.Millisecond)
			read := node()
			d := w.Observe(sent, now, read)
			off := by - d
			if by < 0 {
				off = -off
			}
			if d == 0 || (d > 0) != (by > 0) || off < -time.Millisecond || off > 200*time.Millisecond {
				t.Fatalf("seed %d: set by %v, seen %v", seed, by, d)
			}
			if d := w.Observe(now, now.Add(time.Millisecond), node()); d != 0 {
				t.Fatalf("seed %d: the same jump was seen twice: %v", seed, d)
			}
			now = now.Add(time.Millisecond)
		}
	}
}
