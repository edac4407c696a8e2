package storetest

import (
	"errors"
	"sync"

	"github.com/leasehold-dev/leasehold/store"
)

// checkClose: closing twice is harmless, and after it every call fails.
func checkClose(t *trial) {
	s, _ := t.reopen()
	r := t.request(t.name(), t.options.ShortTTL) // the store is closed before it can be released
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r}); err != nil && !errors.Is(err, store.ErrQuorum) {
		t.Fatalf("acquire: %v", err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
	}
	_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: t.request(t.name(), t.long)})
	t.closed("acquire", err)
	errs := s.Renew(t.Context(), []store.Lease{r, r})
	if len(errs) != 2 {
		t.Fatalf("renew of two leases after close: %d results, want 2", len(errs))
	}
	t.closed("renew", errs[0])
	t.closed("renew", errs[1])
	t.closed("release", s.Release(t.Context(), store.ReleaseRequest{Lease: r}))
	_, err = s.Inspect(t.Context(), r.Name)
	t.closed("inspect", err)
	_, err = s.List(t.Context(), "")
	t.closed("list", err)
	if c := s.Caps(); c.Engine == "" {
		t.Errorf("caps after close: %+v, want an engine", c)
	}
}

// checkCloseKeepsLeases: closing a handle ends no lease, neither those it was granted nor
// others.
func checkCloseKeepsLeases(t *trial) {
	a, b := t.reopen()
	if b == nil {
		return // no handle is left to inspect the locks
	}
	mine, theirs := t.request(t.name(), t.long), t.request(t.name(), t.long)
	t.acquire(a, mine)
	t.acquire(b, theirs)
	if err := a.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	for _, r := range []store.Lease{mine, theirs} {
		st := t.inspect(b, r.Name)
		if !st.Held || st.Holder.Owner != r.Owner {
			t.Fatalf("after another handle was closed: %+v, want it held by %s", st, r.Owner)
		}
		t.refuse(b, t.request(r.Name, t.long))
		if err := t.renew(b, r); err != nil {
			t.Fatalf("renew after another handle was closed: %v", err)
		}
		t.release(b, r)
	}
}

// checkCloseDuringCalls: calls under way when the store is closed return, with an
// outcome or with ErrClosed.
func checkCloseDuringCalls(t *trial) {
	s, _ := t.reopen()
	const workers = 4
	var wg sync.WaitGroup
	started := make(chan struct{}, workers)
	deadline := t.now().Add(t.patience)
	for range workers {
		wg.Go(func() {
			for i := 0; ; i++ {
				r := t.request(t.name(), t.options.ShortTTL)
				_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r})
				if err == nil {
					err = s.Release(t.Context(), store.ReleaseRequest{Lease: r})
				}
				if i == 0 {
					started <- struct{}{}
				}
				if errors.Is(err, store.ErrClosed) {
					return
				}
				if t.now() > deadline {
					t.Errorf("calls go on after close")
					return
				}
			}
		})
	}
	for range workers {
		<-started
	}
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	wg.Wait()
}

func (t *trial) closed(what string, err error) {
	t.Helper()
	if !errors.Is(err, store.ErrClosed) {
		t.Errorf("%s after close: got error %v, want one that matches store.ErrClosed", what, err)
	}
}
