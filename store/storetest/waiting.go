package storetest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// waiting is a Wait under way.
type waiting struct {
	store.Request // its owner changes to whom the lock was granted to
	rank          uint64
	cancel        context.CancelFunc
	start         clock.Instant
	// done is closed when it is over, and what follows is set.
	done  chan struct{}
	back  clock.Instant
	grant store.Grant
	err   error

	mu   sync.Mutex
	told []error
}

// applicant is what an attempt that is ready to wait asks for.
func (t *trial) applicant(name string, ttl time.Duration) store.Request {
	r := t.request(name, ttl)
	r.Owner = store.NewOwnerAt(time.Now())
	return r
}

// named is the lease that was granted, perhaps to another owner of the same rank.
func named(r store.Request, g store.Grant) store.Request {
	r.Owner = cmp.Or(g.Owner, r.Owner)
	return r
}

// wait begins to wait. The wait is over at the end of the check at the latest.
func (t *trial) wait(s store.Store, r store.Request) *waiting {
	ctx, cancel := context.WithCancel(t.Context())
	w := &waiting{Request: r, rank: store.Rank(r.Owner), cancel: cancel, done: make(chan struct{}), start: clock.System().Now()}
	go func() {
		defer close(w.done)
		w.grant, w.err = s.(store.Waiter).Wait(ctx, r, w.hear)
		w.back = clock.System().Now()
		if w.err == nil {
			r = named(r, w.grant)
			w.Owner = r.Owner
			t.track(r)
		}
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case <-w.done:
		case <-time.After(t.patience):
			t.Errorf("wait for %q: does not come back %v after its context has ended", r.Name, t.patience)
		}
	})
	return w
}

// hear is the reason callback.
func (w *waiting) hear(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, err)
}

// heard is what the waiter was told so far.
func (w *waiting) heard() []error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.told)
}

// over says whether the wait is.
func (w *waiting) over() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// queue has waiters for a lock that is held stand in line, each of them before
// the next one comes.
func (t *trial) queue(all ...store.Request) (line []*waiting) {
	t.Helper()
	for i, r := range all {
		w := t.wait(t.handles()[i%len(t.handles())], r)
		t.eventually("who has to wait is told why", func() bool { return w.over() || len(w.heard()) > 0 })
		t.waits(w)
		line = append(line, w)
	}
	return line
}

// waits requires all of line to be waiting.
func (t *trial) waits(line ...*waiting) {
	t.Helper()
	for i, w := range line {
		if w.over() {
			t.Fatalf("wait for %q, number %d: over with token %v, error %v, while others come first", w.Name, i+1, w.grant.Token, w.err)
		}
	}
}

// gets requires the wait to end with the lock, as a grant that is worth it.
func (t *trial) gets(what string, w *waiting) {
	t.Helper()
	t.eventually(what, w.over)
	if w.err != nil {
		t.Fatalf("%s: got error %v", what, w.err)
	}
	if w.grant.Token == 0 {
		t.Fatalf("%s: granted without a token", what)
	}
	t.spares(what, w.grant.Spare, w.Spare)
	if took := w.back.Sub(w.start); w.grant.Since < 0 || w.grant.Since > took {
		t.Fatalf("%s: granted by a request that left %v after the call, which took %v", what, w.grant.Since, took)
	}
	t.lasts(what, w.Request, w.TTL, w.start.Add(w.grant.Since))
}

// ends requires the wait to end with an error that matches want.
func (t *trial) ends(what string, w *waiting, want error) {
	t.Helper()
	t.eventually(what, w.over)
	if !errors.Is(w.err, want) {
		t.Fatalf("%s: got token %v, error %v, want %v", what, w.grant.Token, w.err, want)
	}
}

// lined requires every handle to show, before long, exactly these in line.
func (t *trial) lined(what string, name string, want ...*waiting) {
	t.Helper()
	for _, s := range t.handles() {
		t.eventually(what, func() bool {
			return slices.EqualFunc(t.inspect(s, name).Line, want, func(p store.Place, w *waiting) bool { return store.Rank(p.Holder.Owner) == w.rank })
		})
	}
}

// vacant requires nothing to be left of a lock before long: neither holder nor line.
func (t *trial) vacant(what string, name string) {
	t.Helper()
	for _, s := range t.handles() {
		t.eventually(what, func() bool {
			st := t.inspect(s, name)
			return !st.Held && len(st.Line) == 0
		})
	}
}

// last is the last of the tokens that w was granted.
func (w *waiting) last() fence.Token { return w.grant.Token + fence.Token(w.grant.Spare) }
