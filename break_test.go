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

// A holder that is broken is told by its next renewal, and nobody has the lock before.
func TestBreakTellsTheHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		var token leasehold.Token
		told := make(chan time.Time, 1)
		held := make(chan struct{})
		done := make(chan error)
		go func() {
			done <- b.c.Mutex("a").With(leasehold.LockOptions{TTL: 30 * time.Second}).Do(t.Context(), func(ctx context.Context, l *leasehold.Lease) error {
				token = l.Token()
				close(held)
				<-ctx.Done()
				told <- time.Now()
				time.Sleep(time.Second) // it takes a while to stop
				return nil
			})
		}()
		<-held
		time.Sleep(15 * time.Second)
		next := make(chan time.Time, 1)
		go func() {
			l, err := b.other().Mutex("a").Acquire(t.Context())
			if err != nil {
				t.Error(err)
			}
			next <- time.Now()
			b.release(l)
		}()
		synctest.Wait()
		start := time.Now()
		if err := b.other().Break(t.Context(), leasehold.BreakRequest{Name: "a", Token: token, By: "me", Reason: "it hangs"}); err != nil {
			t.Fatal(err)
		}
		var lost *leasehold.LostError
		if err := <-done; !errors.As(err, &lost) || lost.Cause != leasehold.LostDenied {
			t.Errorf("the holder has %v", err)
		}
		at, then := <-told, <-next
		if after := at.Sub(start); after < 4*time.Second || after > 5*time.Second {
			t.Errorf("told after %v, the next renewal was due after 5 s", after)
		}
		if then.Before(at.Add(time.Second)) || time.Since(start) > 7*time.Second {
			t.Errorf("told at %v, the next holder at %v, Break returned after %v", at.Sub(start), then.Sub(start), time.Since(start))
		}
		st, err := b.store.Inspect(t.Context(), "a")
		if err != nil || st.Broken == nil || st.Broken.Reason != "it hangs" || st.Broken.By != "me" || st.Broken.Token != token || st.Broken.At.IsZero() {
			t.Errorf("%+v, %v", st.Broken, err)
		}
	})
}

// A dead holder's lease is not renewed any more, and ends.
func TestBreakOfADeadHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		g, err := b.store.Acquire(t.Context(), store.AcquireRequest{Lease: store.Lease{Name: "a", Owner: "dead", TTL: time.Minute}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r := leasehold.BreakRequest{Name: "a", Token: g.Token}
		if err := b.other().Break(ctx, r); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, leasehold.ErrBusy) {
			t.Errorf("the break was waited for: %v", err)
		}
		start := time.Now()
		if err := b.other().Break(t.Context(), r); err != nil || time.Since(start) < 59*time.Second || time.Since(start) > time.Minute {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if err := b.other().Break(t.Context(), r); err != nil {
			t.Errorf("the lease is over: %v", err)
		}
	})
}

func TestBreakNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		first := b.acquire(b.c.Mutex("a"))
		start := time.Now()
		if err := b.other().Break(t.Context(), leasehold.BreakRequest{Name: "a", Token: first.Token(), Now: true}); err != nil || time.Since(start) != 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		second := b.acquire(b.other().Mutex("a"))
		<-first.Done()
		if second.Token() <= first.Token() || second.Err() != nil {
			t.Errorf("token %v after %v; %v", second.Token(), first.Token(), second.Err())
		}
		if err := first.Release(t.Context()); !errors.Is(err, leasehold.ErrLost) || !b.held("a") {
			t.Errorf("%v, held: %v", err, b.held("a"))
		}
		// The operator still has the first token before his eyes.
		err := b.other().Break(t.Context(), leasehold.BreakRequest{Name: "a", Token: first.Token(), Now: true})
		if !errors.Is(err, leasehold.ErrBusy) || !strings.Contains(err.Error(), second.Token().String()) || second.Err() != nil {
			t.Errorf("%v; %v", err, second.Err())
		}
		b.release(second)
	})
}

// Readers share a token, so that it takes the owner to say which of them is meant.
func TestBreakOneOfSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		one, two := b.acquire(b.c.RW("a").Read()), b.acquire(b.c.RW("a").Read())
		r := leasehold.BreakRequest{Name: "a", Token: one.Token(), Now: true}
		if err := b.other().Break(t.Context(), r); !errors.Is(err, leasehold.ErrInvalid) {
			t.Error(err)
		}
		r.Owner = "nobody"
		if err := b.other().Break(t.Context(), r); !errors.Is(err, leasehold.ErrBusy) {
			t.Error(err)
		}
		r.Owner = one.Owner()
		if err := b.other().Break(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		<-one.Done()
		if err := two.Extend(t.Context()); err != nil {
			t.Error(err)
		}
		b.release(two)
		one.Release(t.Context())
	})
}

func TestBreakRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		lease := b.acquire(b.c.Mutex("a"))
		for _, r := range []leasehold.BreakRequest{{Token: 1}, {Name: "a"}, {Name: "a", Token: lease.Token(), Reason: strings.Repeat("x", store.MaxNote+1)}} {
			if err := b.other().Break(t.Context(), r); !errors.Is(err, leasehold.ErrInvalid) {
				t.Errorf("%v: %v", r.Name, err)
			}
		}
		foreign := leasehold.New(strange{b.store.Store.(store.Breaker)}, nil)
		if err := foreign.Break(t.Context(), leasehold.BreakRequest{Name: "a", Token: 7}); !errors.Is(err, leasehold.ErrUnsupported) || !strings.Contains(err.Error(), "another kind of client") {
			t.Error(err)
		}
		unable := leasehold.New(struct{ store.Store }{b.store.Store}, nil)
		if err := unable.Break(t.Context(), leasehold.BreakRequest{Name: "a", Token: lease.Token()}); !errors.Is(err, leasehold.ErrUnsupported) {
			t.Error(err)
		}
		b.release(lease)
	})
}

// strange is a store whose locks another kind of client has made.
type strange struct{ store.Breaker }

func (strange) Inspect(_ context.Context, name string) (store.State, error) {
	return store.State{Name: name, Held: true, Holder: store.Holder{Owner: "x", Foreign: true}, ExpiresIn: time.Second}, nil
}
