package load

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestBucketsAreInOrderAndNarrow(t *testing.T) {
	last := -1
	for d := time.Duration(0); d <= 2*time.Hour; d += d/200 + 1 {
		b := bucketOf(d)
		if b < last || b >= bucketCount {
			t.Fatalf("%v is in bucket %d, want one of %d to %d", d, b, last, bucketCount-1)
		}
		last = b
		if m := middleOf(b); d <= longest && (m-d).Abs() > d/64 {
			t.Fatalf("%v counts as %v, want within a 64th", d, m)
		}
	}
	if b := bucketOf(-1); b != 0 {
		t.Errorf("a negative duration is in bucket %d, want 0", b)
	}
}

func TestQuantiles(t *testing.T) {
	var a, b, h Histogram
	var all []time.Duration
	for i := range 5000 {
		d := time.Duration(rand.ExpFloat64() * float64(time.Millisecond))
		all = append(all, d)
		if i%3 == 0 {
			a.add(d)
		} else {
			b.add(d)
		}
	}
	h.merge(&a)
	h.merge(&b)
	slices.Sort(all)
	for _, q := range []float64{0, 0.001, 0.5, 0.9, 0.99, 0.999, 1} {
		want := all[max(0, int(q*5000)-1)]
		if got := h.Quantile(q); (got - want).Abs() > want/64+1 {
			t.Errorf("quantile %v: %v, want %v", q, got, want)
		}
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		of   []int
		want int
	}{{nil, 0}, {[]int{7}, 7}, {[]int{9, 1}, 1}, {[]int{9, 1, 5}, 5}, {[]int{4, 3, 2, 1}, 2}} {
		if got := Median(slices.Clone(c.of)); got != c.want {
			t.Errorf("Median(%v) = %d, want %d", c.of, got, c.want)
		}
	}
}
