package sqlstore

import (
	"github.com/leasehold-dev/leasehold/store"
)

// A mutex and a lock of another kind have procedures of their own: those of a mutex are
// the fastest, and its waiters are woken. Semaphore(1) is a mutex, so a lease of one can be
// among the others: its semaphore had another size, or was given one by Resize. So what
// does not find the lease of a mutex looks there as well.

// request is a request for a lock, which can be a mutex or not.
type request struct {
	store.Lease
	spare       int
	durable     bool
	wait, barge bool
	signal      func() int64 // that the session takes; nil: none
}

// scanner scans a row of an answer.
type scanner func(*answer, row) error

// ask makes the calls of the request with do, which reports whether the other procedure has
// to be asked, since the lock is in use as another kind than it was before. byKind is set
// if the last call was to askKind.
func (r *request) ask(do func(st statement, scan scanner, args []any) (again bool, err error), c calls) (byKind bool, err error) {
	args := []any{[]byte(r.Name), r.Owner, r.Attempt, []byte(r.Meta), micros(r.TTL), int64(r.spare), r.wait, r.barge, r.durable}
	args = args[:len(args):len(args)]
	kind := r.Kind.Normal()
	for again := true; again; {
		if byKind = !kind.IsMutex(); !byKind {
			signal := int64(0)
			if r.signal != nil {
				signal = r.signal()
			}
			if again, err = do(c.ask, (*answer).scan, append(args, signal)); !again || err != nil {
				return false, err
			}
			byKind = true
		}
		if again, err = do(c.askKind, (*answer).scanKind, append(args, kind.Limit, kind.Shared, max(r.Weight, 1))); err != nil {
			return true, err
		}
	}
	return byKind, nil
}
