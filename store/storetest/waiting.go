package storetest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// waiting is a pending Wait.
type waiting struct {
	store.WaitRequest // after a grant, its Owner is the one it was granted to
	via               *store.Store
	rank              uint64
	cancel            context.CancelFunc
	start             clock.Instant
	// done is closed when the Wait has returned; back, grant and err are then set.
	done  chan struct{}
	back  clock.Instant
	grant store.Grant
	err   error

	mu      sync.Mutex
	reasons []error
}

// named returns r with the owner of grant g.
func named(r store.WaitRequest, g store.Grant) store.WaitRequest {
	r.Owner = g.Lease.Owner
	return r
}

// wait starts a Wait. It ends at the end of the check at the latest.
func (t *trial) wait(s *store.Store, r store.WaitRequest) *waiting {
	ctx, cancel := context.WithCancel(t.Context())
	w := &waiting{WaitRequest: r, via: s, rank: store.Rank(r.Owner), cancel: cancel, done: make(chan struct{}), start: t.now()}
	go func() {
		defer close(w.done)
		w.grant, w.err = s.Wait(ctx, r, w.report)
		w.back = t.now()
		if w.err == nil {
			// A check that finds a store at fault may read the owner at the same time.
			if r = named(r, w.grant); w.Owner != r.Owner {
				w.Owner = r.Owner
			}
			t.track(r.Lease)
		}
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case <-w.done:
		case <-time.After(t.patience):
			t.Errorf("wait for %q: has not returned %v after its context ended", r.Name, t.patience)
		}
	})
	return w
}

// report is the reason function.
func (w *waiting) report(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reasons = append(w.reasons, err)
}

// reports returns the reasons to wait so far.
func (w *waiting) reports() []error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.reasons)
}

// over reports whether the Wait has returned.
func (w *waiting) over() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// queue starts a Wait for each request, in order. The lock must be held.
func (t *trial) queue(all ...store.WaitRequest) (queue []*waiting) {
	t.Helper()
	for i, r := range all {
		w := t.wait(t.handles()[i%len(t.handles())], r)
		t.eventually("a waiter gets a reason to wait", func() bool { return w.over() || len(w.reports()) > 0 })
		t.waits(w)
		queue = append(queue, w)
	}
	return queue
}

// waits requires that no Wait of queue has returned.
func (t *trial) waits(queue ...*waiting) {
	t.Helper()
	for i, w := range queue {
		if w.over() {
			t.Fatalf("wait for %q, number %d: returned token %v, error %v, while others come first", w.Name, i+1, w.grant.Token, w.err)
		}
	}
}

// gets requires the Wait to return a valid grant of the lock.
func (t *trial) gets(what string, w *waiting) {
	t.Helper()
	t.eventually(what, w.over)
	if w.err != nil {
		t.Fatalf("%s: got error %v, want the lock", what, w.err)
	}
	t.granted(w.grant)
	if w.grant.Token == 0 {
		t.Fatalf("%s: granted without a token", what)
	}
	if took := w.back.Sub(w.start); w.grant.Since < 0 || w.grant.Since > took {
		t.Fatalf("%s: granted by a request that left %v after the call, want 0s to the %v that the call took", what, w.grant.Since, took)
	}
	t.lasts(what, w.Lease, w.TTL, w.start.Add(w.grant.Since))
}

// ends requires the Wait to return an error that matches want.
func (t *trial) ends(what string, w *waiting, want error) {
	t.Helper()
	t.eventually(what, w.over)
	if !errors.Is(w.err, want) {
		t.Fatalf("%s: got token %v, error %v, want %v", what, w.grant.Token, w.err, want)
	}
}

// queued requires every handle to show, before long, exactly these waiters in
// order.
func (t *trial) queued(what string, name string, want ...*waiting) {
	t.Helper()
	for _, s := range t.handles() {
		t.eventually(what, func() bool {
			return slices.EqualFunc(t.inspect(s, name).Queue, want, func(p store.Place, w *waiting) bool { return store.Rank(p.Holder.Owner) == w.rank })
		})
	}
}
