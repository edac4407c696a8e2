package renewer

import (
	"math"
	"math/bits"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// addDue has the renewal of l sent soon.
func (r *Renewer[T]) addDue(l *Lease[T], now clock.Instant) {
	l.sendBy = now.Add(l.Renew / patience)
	if len(r.due) == 0 {
		r.sendBy = math.MaxInt64
	}
	r.sendBy = min(r.sendBy, l.sendBy)
	r.due = append(r.due, l)
}

// work renews what is due until nothing is.
func (r *Renewer[T]) work() {
	done := false
	defer func() {
		if !done { // a function of the caller's ended this goroutine
			go r.work()
		}
	}()
	for {
		batch := r.takeBatch()
		if len(batch) == 0 {
			done = true
			return
		}
		r.driver.Contain(func() { r.driver.Renew(batch) })
	}
}

// takeBatch returns some of the leases that are due. If there are none, the calling
// worker ends and is no longer counted.
//
// The driver waits for the answer to a batch as long as its shortest TTL allows, so the longest
// is less than twice as long.
func (r *Renewer[T]) takeBatch() (batch []T) {
	r.driver.Lock()
	defer r.driver.Unlock()
	left := r.due[:0]
	r.sendBy = math.MaxInt64
	var size int // of their TTLs
	for _, l := range r.due {
		if len(batch) == 0 {
			size = bits.Len64(uint64(l.TTL))
		}
		switch {
		case !l.Live():
		case len(batch) < maxBatch && bits.Len64(uint64(l.TTL)) == size:
			batch = append(batch, l.Of)
		default:
			left = append(left, l)
			r.sendBy = min(r.sendBy, l.sendBy)
		}
	}
	clear(r.due[len(left):])
	r.due = left
	if len(batch) == 0 {
		r.workers--
		return nil
	}
	if len(left) > 0 { // another worker may be needed
		r.armed, r.sweepAt = true, 0
		r.timer.Reset(1)
	}
	return batch
}
