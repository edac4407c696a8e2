package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// checkWaitGivenUp: a Wait that gives up returns the error of its context and leaves the
// queue, from any position. The others keep their order.
func checkWaitGivenUp(t *trial) {
	holder := t.request(t.name(), t.long)
	t.acquire(t.first, holder)
	var all []store.WaitRequest
	for range 5 {
		all = append(all, t.applicant(holder.Name, t.long))
	}
	queue := t.queue(all...)
	queue[2].cancel()
	t.ends("a waiter in the middle of the queue gives up", queue[2], context.Canceled)
	t.queued("a waiter in the middle of the queue has given up", holder.Name, queue[0], queue[1], queue[3], queue[4])
	queue[0].cancel()
	t.ends("the first in the queue gives up", queue[0], context.Canceled)
	queue[4].cancel()
	t.ends("the last in the queue gives up", queue[4], context.Canceled)
	t.queued("waiters that gave up are out of the queue", holder.Name, queue[1], queue[3])
	t.heldBy(holder)
	t.release(t.first, holder)
	t.gets("the first remaining waiter gets the lock", queue[1])
	t.waits(queue[3])
	t.release(t.other(), queue[1].Lease)
	t.gets("the last remaining waiter gets the lock", queue[3])
	t.release(t.other(), queue[3].Lease)
	t.vacant("nothing is left of a queue that has ended", holder.Name)
}

// checkWaitGivenUpByAll: if its only waiter gives up, a released lock is free, even if both
// happen at once.
func checkWaitGivenUpByAll(t *trial) {
	holder := t.request(t.name(), t.long)
	t.acquire(t.first, holder)
	w := t.wait(t.other(), t.applicant(holder.Name, t.long))
	t.eventually("a waiter gets a reason to wait", func() bool { return w.over() || len(w.reports()) > 0 })
	w.cancel()
	t.ends("the only one in the queue gives up", w, context.Canceled)
	t.queued("nobody is in the queue", holder.Name)
	t.release(t.first, holder)
	t.vacant("a lock that is waited for no more is free when it is released", holder.Name)

	for range 5 {
		holder := t.request(t.name(), t.long)
		t.acquire(t.first, holder)
		w := t.queue(t.applicant(holder.Name, t.long))[0]
		go w.cancel()
		t.release(t.other(), holder)
		t.eventually("a Wait that gives up returns", w.over)
		switch {
		case w.err == nil:
			t.release(t.first, w.Lease)
		case !errors.Is(w.err, context.Canceled):
			t.Fatalf("gave up while it was handed the lock: got error %v, want the lock or %v", w.err, context.Canceled)
		}
		t.vacant("nothing is left of a wait that was given up", holder.Name)
	}
}

// checkWaitEndedContext: a Wait with an ended context gets no lock and leaves no place,
// whether the lock is free or held.
func checkWaitEndedContext(t *trial) {
	for _, s := range t.handles() {
		for want, ctx := range t.ended() {
			for _, held := range []bool{false, true} {
				holder := t.request(t.name(), t.long)
				if held {
					t.acquire(t.first, holder)
				}
				r := t.applicant(holder.Name, t.long)
				_, err := s.Wait(ctx, r, func(error) {})
				if err == nil {
					t.track(r.Lease)
				}
				if !errors.Is(err, want) {
					t.Errorf("wait on an ended context: got error %v, want %v", err, want)
				}
				if held {
					t.queued("nobody is in the queue on an ended context", holder.Name)
					t.release(t.first, holder)
				}
				t.vacant("nothing is left of a wait on an ended context", holder.Name)
			}
		}
	}
	// A deadline in the middle of the wait.
	holder := t.request(t.name(), t.long)
	t.acquire(t.first, holder)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := t.other().Wait(ctx, t.applicant(holder.Name, t.long), nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("wait until a deadline: got error %v, want %v", err, context.DeadlineExceeded)
	}
	t.queued("nobody is in the queue after the deadline", holder.Name)
}

// checkWaitClosed: closing the store ends every Wait at once, and no lock is
// handed to an ended Wait. After that every call fails.
func checkWaitClosed(t *trial) {
	a, b := t.reopen()
	rest := a
	if b != nil {
		rest = b
	}
	holder := t.request(t.name(), t.options.ShortTTL) // no handle may be left to release it
	for try := range 8 {
		holder = t.request(t.name(), t.options.ShortTTL<<try)
		if _, err := rest.Acquire(t.Context(), store.AcquireRequest{Lease: holder}); err != nil && !errors.Is(err, store.ErrQuorum) {
			t.Fatalf("acquire: %v", err)
		}
		w := t.wait(a, t.applicant(holder.Name, t.long))
		t.eventually("a waiter gets a reason to wait", func() bool { return w.over() || len(w.reports()) > 0 })
		if w.over() {
			continue // the machine was too slow: the lease has expired
		}
		if err := a.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
		closed := t.now()
		t.eventually("a Wait ends when the store is closed", w.over)
		if w.err == nil && w.back < closed { // the lease expired before the store was closed
			if a, b = t.reopen(); b != nil {
				rest = b
			} else {
				rest = a
			}
			continue
		}
		if w.err == nil {
			t.Fatalf("wait: granted (token %v) by a store that is closed", w.grant.Token)
		}
		t.closed("wait", w.err)
		break
	}
	if b != nil {
		t.eventually("nobody is in the queue after the store was closed", func() bool { return len(t.inspect(b, holder.Name).Queue) == 0 })
		t.eventually("the lock is not handed to a waiter that is gone", func() bool { return !t.inspect(b, holder.Name).Held })
	}
	_, err := a.Wait(t.Context(), t.applicant(t.name(), t.long), nil)
	t.closed("wait", err)
}
