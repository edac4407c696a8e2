package renewer

import (
	"math/rand/v2"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Whatever is added, moved and removed, each lease knows its index in the heap, and the
// earliest deadline is on top.
func TestDeadlines(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var d deadlines[int]
	var kept []*Lease[int]
	for step := range 20000 {
		at := clock.Instant(random.IntN(1000))
		switch i := random.IntN(len(kept) + 1); {
		case i == len(kept) || step < 50:
			l := new(Lease[int])
			kept = append(kept, l)
			d.add(l)
			d.move(l.at, at)
		case random.IntN(2) == 0 && len(kept) > 30:
			l := kept[i]
			kept[i] = kept[len(kept)-1]
			kept = kept[:len(kept)-1]
			if d.remove(l.at); l.at >= 0 {
				t.Fatalf("step %d: a removed lease has index %d, want a negative one", step, l.at)
			}
		default:
			l := kept[i]
			if d.move(l.at, at); d[l.at].at != at {
				t.Fatalf("step %d: a deadline is %v, want %v", step, d[l.at].at, at)
			}
		}
		if len(d) != len(kept) {
			t.Fatalf("step %d: %d leases in the heap, want %d", step, len(d), len(kept))
		}
		for i, w := range d {
			if w.l.at != i || w.at < d[0].at || i > 0 && w.at < d[(i-1)/fan].at {
				t.Fatalf("step %d: the lease at index %d has index %d and deadline %v, want that index and no earlier deadline than the one above", step, i, w.l.at, w.at)
			}
		}
	}
	for len(d) > 0 {
		first := d[0].at
		d.remove(0)
		if len(d) > 0 && d[0].at < first {
			t.Fatalf("the deadline %v comes after %v, want them in order", d[0].at, first)
		}
	}
}

// BenchmarkDeadlines moves the first of very many deadlines to the end, as a renewal does.
func BenchmarkDeadlines(b *testing.B) {
	var d deadlines[int]
	for i := range 100000 {
		l := new(Lease[int])
		d.add(l)
		d.move(l.at, clock.Instant(i))
	}
	now := clock.Instant(len(d))
	for b.Loop() {
		d.move(0, now)
		now++
	}
}
