package renewer

import "slices"

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
func (r *Renewer[T]) takeBatch() []T {
	r.driver.Lock()
	defer r.driver.Unlock()
	n := min(len(r.due), maxBatch)
	if n == 0 {
		r.workers--
		return nil
	}
	batch := slices.Clone(r.due[:n])
	r.due = slices.Delete(r.due, 0, n)
	return batch
}
