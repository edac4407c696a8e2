package load

import (
	"math/bits"
	"time"
)

// Histogram counts durations from a nanosecond to an hour, in buckets whose width
// is at most 1/64 of their values. The zero value is empty.
type Histogram struct {
	count   uint64
	buckets [bucketCount]uint32
}

const (
	fine        = 6 // the highest bits of a duration that a bucket keeps
	longest     = time.Hour
	bucketCount = (42-fine)<<fine + 1<<(fine+1) // an hour has 42 bits
)

// bucketOf returns the bucket of d: its highest bits, and how many bits follow.
func bucketOf(d time.Duration) int {
	v := uint64(min(max(d, 0), longest))
	shift := max(bits.Len64(v)-fine-1, 0)
	return shift<<fine + int(v>>shift)
}

// middleOf returns the duration in the middle of a bucket.
func middleOf(bucket int) time.Duration {
	shift := max(bucket>>fine-1, 0)
	low := uint64(bucket-shift<<fine) << shift
	return time.Duration(low + (uint64(1)<<shift)/2)
}

func (h *Histogram) add(d time.Duration) {
	h.buckets[bucketOf(d)]++
	h.count++
}

func (h *Histogram) merge(o *Histogram) {
	h.count += o.count
	for i, n := range o.buckets {
		h.buckets[i] += n
	}
}

// Quantile returns the duration that the share q of all durations, from 0 to 1,
// does not exceed, to within 1 %. It returns 0 for an empty histogram.
func (h *Histogram) Quantile(q float64) time.Duration {
	want := uint64(q * float64(h.count))
	if float64(want) < q*float64(h.count) || want == 0 {
		want++
	}
	var seen uint64
	for i, n := range h.buckets {
		if seen += uint64(n); n > 0 && seen >= want {
			return middleOf(i)
		}
	}
	return h.most()
}

func (h *Histogram) most() time.Duration {
	for i := len(h.buckets) - 1; i >= 0; i-- {
		if h.buckets[i] > 0 {
			return middleOf(i)
		}
	}
	return 0
}
