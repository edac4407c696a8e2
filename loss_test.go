package leasehold_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store"
)

// Releasing a lost lease of a fixed owner does not end a lease that another process has
// with the same owner.
func TestReleaseOfALostLeaseSparesItsOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		o := short
		o.Owner, o.Tries, o.MaxHold = "deploy", 1, 20*time.Second
		l := b.acquire(b.c.Mutex("a").With(o))
		other := store.AcquireRequest{Lease: store.Lease{Name: "a", Owner: "deploy", Attempt: store.NewOwner(), TTL: time.Minute}}
		if _, err := b.store.Engine.Acquire(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		<-l.Done()
		if err := l.Release(t.Context()); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("release: %v, want ErrLost", err)
		}
		if st, err := b.store.Engine.Inspect(t.Context(), "a"); err != nil || !st.Held {
			t.Errorf("the lock is %+v, %v, want it held by the other process", st, err)
		}
	})
}

// A program can tell by LostError.Cause, without reading text, how a lease was lost.
func TestLossHasACause(t *testing.T) {
	for _, c := range []struct {
		cause leasehold.LossCause
		text  string
		lose  func(b *bench) error
	}{
		{leasehold.LostExpired, "expired", func(b *bench) error {
			o := short
			o.NoRenew = true
			l := b.acquire(b.c.Mutex("a").With(o))
			<-l.Done()
			return l.Err()
		}},
		{leasehold.LostDenied, "denied by the store", func(b *bench) error {
			l := b.acquire(b.c.Mutex("a").With(short))
			b.store.onRenew(all(store.ErrNotHeld))
			<-l.Done()
			return l.Err()
		}},
		{leasehold.LostDenied, "denied by the store", func(b *bench) error {
			l := b.acquire(b.c.Mutex("a").With(short))
			b.store.onRelease(func(context.Context, store.ReleaseRequest) error { return store.ErrNotHeld })
			return l.Release(b.t.Context())
		}},
		{leasehold.LostMaxHold, "maximum hold reached", func(b *bench) error {
			o := short
			o.MaxHold = 20 * time.Second
			l := b.acquire(b.c.Mutex("a").With(o))
			<-l.Done()
			return l.Err()
		}},
		{leasehold.LostLateGrant, "granted too late", func(b *bench) error {
			b.store.onAcquire(func(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
				g, err := b.store.Engine.Acquire(ctx, r)
				time.Sleep(r.TTL - time.Millisecond)
				return g, err
			})
			_, err := b.c.Mutex("a").With(short).Try(b.t.Context())
			return err
		}},
	} {
		t.Run(c.text, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := c.lose(newBench(t))
				var lost *leasehold.LostError
				if !errors.As(err, &lost) || lost.Cause != c.cause || lost.Cause.String() != c.text {
					t.Errorf("%v (as a LostError: %+v), want the cause %d, %q", err, lost, c.cause, c.text)
				}
			})
		})
	}
	if got := leasehold.LossCause(0).String(); !strings.Contains(got, "0") {
		t.Errorf("an invalid cause reads %q, want its number, 0", got)
	}
}
