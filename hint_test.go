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

// pushing is a store that notifies clients of broken leases. A test calls hint to notify
// them although nobody broke a lease.
type pushing struct {
	*script
	store.Engine
	hint func(owner string)
	stop func() // called when nobody listens any more
}

func newPushing(b *bench) *pushing {
	return &pushing{script: b.store, Engine: b.store.Engine, stop: func() {}}
}

func (p *pushing) Caps() store.Caps { return p.Engine.Caps() }

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
	forget := p.Engine.NotifyBroken(f)
	return func() { forget(); p.stop() }
}

// If the store pushes, the holder of a broken lease is notified at once, and the lock is
// free as soon as the holder has released it.
func TestBreakIsPushed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		c := leasehold.New(store.New(newPushing(b)), &leasehold.Options{Clock: b.clock})
		for _, now := range []bool{false, true} {
			start := time.Now()
			var token leasehold.Token
			held, done := make(chan struct{}), make(chan error)
			go func() {
				done <- c.Mutex("a").With(leasehold.LockOptions{TTL: 30 * time.Second}).Do(t.Context(), func(ctx context.Context, l *leasehold.Lease) error {
					token = l.Token()
					close(held)
					<-ctx.Done()
					if after := time.Since(start) - 15*time.Second; after > time.Microsecond {
						t.Errorf("notified %v after the break, want at once", after)
					}
					time.Sleep(time.Second) // it takes a while to stop
					return nil
				})
			}()
			<-held
			time.Sleep(15 * time.Second)
			if err := b.other().Operator().Break(t.Context(), leasehold.BreakRequest{Name: "a", Token: token, Now: now}); err != nil {
				t.Fatal(err)
			}
			if after := time.Since(start) - 15*time.Second; now && after > time.Microsecond || !now && (after < time.Second || after > 2*time.Second) {
				t.Errorf("with Now %v, Break returned after %v, want at once with it, and after 1 to 2 s without", now, after)
			}
			var lost *leasehold.LostError
			if err := <-done; !errors.As(err, &lost) || lost.Cause != leasehold.LostDenied {
				t.Errorf("the holder's Do: %v, want a LostError with the cause %v", err, leasehold.LostDenied)
			}
		}
	})
}

// A holder whose lease is broken before its client has the grant is notified as soon as the
// client has it, also if nobody repeats the break.
func TestBreakIsPushedBeforeTheGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		p := newPushing(b)
		c := leasehold.New(store.New(p), &leasehold.Options{Clock: b.clock})
		b.store.onAcquire(func(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
			g, err := p.Engine.Acquire(ctx, r)
			if err != nil {
				return g, err
			}
			if _, err := p.Engine.BreakLease(ctx, store.BreakRequest{Name: r.Name, Owner: r.Owner, Token: g.Token}); err != nil {
				t.Error(err)
			}
			time.Sleep(5 * time.Second) // the process is stopped
			return g, nil
		})
		start := time.Now()
		l := b.acquire(c.Mutex("a").With(leasehold.LockOptions{TTL: 30 * time.Second}))
		<-l.Done()
		if after := time.Since(start) - 5*time.Second; after > time.Microsecond {
			t.Errorf("notified %v after the grant, want at once", after)
		}
		if err := l.Release(t.Context()); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("release: %v, want an error that matches ErrLost", err)
		}
	})
}

// However many hints arrive, a lease is renewed early at most once between two regular
// renewals, and hints about other owners renew nothing.
func TestFalseHints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		p := newPushing(b)
		c := leasehold.New(store.New(p), &leasehold.Options{Clock: b.clock})
		one := b.acquire(c.Mutex("a").With(leasehold.LockOptions{TTL: 30 * time.Second}))
		two := b.acquire(c.Mutex("b").With(leasehold.LockOptions{TTL: 30 * time.Second}))
		p.hint("nobody")
		synctest.Wait()
		if n := b.store.called("renew"); n != 0 {
			t.Fatalf("%d renewals after a hint about another owner, want none", n)
		}
		for i := range 30 * 10 {
			for j := range 1100 {
				p.hint(fmt.Sprint("other", i, j))
				p.hint(one.Owner())
			}
			time.Sleep(100 * time.Millisecond)
		}
		if n := b.store.called("renew"); n < 4 || n > 3+6+1 { // the leases may be renewed together
			t.Errorf("%d renewals in 30 s, want 4 to 10: 3 of one lease and at most 6 of the other", n)
		}
		b.release(one)
		b.release(two)
	})
}

// A client that is garbage collected stops listening for hints.
func TestUnusedClientDoesNotListen(t *testing.T) {
	stopped := make(chan struct{})
	p := &pushing{script: scripted(nil), Engine: memstore.New(nil), stop: func() { close(stopped) }}
	leasehold.New(store.New(p), nil)
	for deadline := time.After(time.Minute); ; {
		runtime.GC()
		select {
		case <-stopped:
			return
		case <-deadline:
			t.Fatal("an unused client still listens after a minute")
		case <-time.After(time.Millisecond):
		}
	}
}
