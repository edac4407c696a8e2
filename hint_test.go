package leasehold_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

// pushing is a store that says which leases are broken, also those that nobody breaks.
type pushing struct {
	*script
	*memstore.Store
	hint func(owner string)
	stop func() // called when nobody listens any more
}

func newPushing(b *bench) *pushing {
	return &pushing{script: b.store, Store: b.store.Store.(*memstore.Store), stop: func() {}}
}

func (p *pushing) Acquire(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
	return p.script.Acquire(ctx, r)
}

func (p *pushing) Renew(ctx context.Context, rs []store.Lease) []error {
	return p.script.Renew(ctx, rs)
}

func (p *pushing) Release(ctx context.Context, r store.ReleaseRequest) error {
	return p.script.Release(ctx, r)
}

func (p *pushing) NotifyBroken(f func(owner string)) (stop func()) {
	p.hint = f
	forget := p.Store.NotifyBroken(f)
	return func() { forget(); p.stop() }
}

// A store that pushes has the holder told at once, and the lock goes on as soon as the
// holder has released it.
func TestBreakIsPushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		c := leasehold.New(newPushing(b), &leasehold.Options{Clock: b.clock})
		for _, now := range []bool{false, true} {
			start := time.Now()
			var token leasehold.Token
			held, done := make(chan struct{}), make(chan error)
			go func() {
				done <- c.Mutex("a").With(leasehold.LockOptions{TTL: 30 * time.Second}).Do(t.Context(), func(ctx context.Context, l *leasehold.Lease) error {
					token = l.Token()
					close(held)
					<-ctx.Done()
					if after := time.Since(start); after != 15*time.Second {
						t.Errorf("told %v after the break", after-15*time.Second)
					}
					time.Sleep(time.Second) // it takes a while to stop
					return nil
				})
			}()
			<-held
			time.Sleep(15 * time.Second)
			if err := b.other().Break(t.Context(), leasehold.BreakRequest{Name: "a", Token: token, Now: now}); err != nil {
				t.Fatal(err)
			}
			if after := time.Since(start) - 15*time.Second; now && after != 0 || !now && (after < time.Second || after > 2*time.Second) {
				t.Errorf("now %v: Break returned after %v", now, after)
			}
			var lost *leasehold.LostError
			if err := <-done; !errors.As(err, &lost) || lost.Cause != leasehold.LostDenied {
				t.Errorf("the holder has %v", err)
			}
		}
	})
}

// However many hints come, a lease is renewed ahead of its time once between two renewals
// that are due, and others are not.
func TestFalseHints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		p := newPushing(b)
		c := leasehold.New(p, &leasehold.Options{Clock: b.clock})
		one := b.acquire(c.Mutex("a").With(leasehold.LockOptions{TTL: 30 * time.Second}))
		two := b.acquire(c.Mutex("b").With(leasehold.LockOptions{TTL: 30 * time.Second}))
		p.hint("nobody")
		synctest.Wait()
		if n := b.store.called("renew"); n != 0 {
			t.Fatalf("%d renewals", n)
		}
		for i := range 30 * 10 {
			for j := range 1100 {
				p.hint(fmt.Sprint("other", i, j))
				p.hint(one.Owner())
			}
			time.Sleep(100 * time.Millisecond)
		}
		if n := b.store.called("renew"); n < 4 || n > 3+6+1 { // the leases may be renewed together
			t.Errorf("%d renewals in 30 s: 3 of one lease and 6 of the other are the most", n)
		}
		b.release(one)
		b.release(two)
	})
}

// A client that is no longer used no longer listens.
func TestUnusedClientDoesNotListen(t *testing.T) {
	stopped := make(chan struct{})
	p := &pushing{script: scripted(nil), Store: memstore.New(nil), stop: func() { close(stopped) }}
	leasehold.New(p, nil)
	for deadline := time.After(time.Minute); ; {
		runtime.GC()
		select {
		case <-stopped:
			return
		case <-deadline:
			t.Fatal("the client listens for ever")
		case <-time.After(time.Millisecond):
		}
	}
}
