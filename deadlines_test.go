package leasehold

import (
	"math/rand/v2"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Whatever is added, moved and removed: each hold knows where it is, and the first
// is on top.
func TestDeadlines(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var d deadlines
	var kept []*hold
	for step := range 20000 {
		at := clock.Instant(random.IntN(1000))
		switch i := random.IntN(len(kept) + 1); {
		case i == len(kept) || step < 50:
			h := new(hold)
			kept = append(kept, h)
			d.add(h)
			d.move(h.at, at)
		case random.IntN(2) == 0 && len(kept) > 30:
			h := kept[i]
			kept[i] = kept[len(kept)-1]
			kept = kept[:len(kept)-1]
			if d.remove(h.at); h.at >= 0 {
				t.Fatalf("step %d: one that was removed is said to be at %d", step, h.at)
			}
		default:
			h := kept[i]
			if d.move(h.at, at); d[h.at].at != at {
				t.Fatalf("step %d: a deadline was moved to %v and is %v", step, at, d[h.at].at)
			}
		}
		if len(d) != len(kept) {
			t.Fatalf("step %d: %d of %d are left", step, len(d), len(kept))
		}
		for i, w := range d {
			if w.h.at != i || w.at < d[0].at || i > 0 && w.at < d[(i-1)/fan].at {
				t.Fatalf("step %d: the hold at %d believes to be at %d, its deadline %v is before that above it", step, i, w.h.at, w.at)
			}
		}
	}
	for len(d) > 0 {
		first := d[0].at
		d.remove(0)
		if len(d) > 0 && d[0].at < first {
			t.Fatalf("%v comes after %v", d[0].at, first)
		}
	}
}

// BenchmarkDeadlines moves the first of very many to the end, as a renewal does.
func BenchmarkDeadlines(b *testing.B) {
	var d deadlines
	for i := range 100000 {
		h := new(hold)
		d.add(h)
		d.move(h.at, clock.Instant(i))
	}
	now := clock.Instant(len(d))
	for b.Loop() {
		d.move(0, now)
		now++
	}
}
