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

// The next renewal notifies a holder that its lease was broken. The lock goes to another owner
// only after the holder has released it.
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
		if err := b.other().Operator().Break(t.Context(), leasehold.BreakRequest{Name: "a", Token: token, By: "me", Reason: "it hangs"}); err != nil {
			t.Fatal(err)
		}
		var lost *leasehold.LostError
		if err := <-done; !errors.As(err, &lost) || lost.Cause != leasehold.LostDenied {
			t.Errorf("the holder's Do: %v, want a LostError with the cause %v", err, leasehold.LostDenied)
		} else if lost.Broken == nil || lost.Broken.By != "me" || !strings.Contains(lost.Error(), "broken by me: it hangs") {
			t.Errorf("the holder's Do: %v, broken %+v, want who broke the lease, and why", err, lost.Broken)
		}
		at, then := <-told, <-next
		if after := at.Sub(start); after < 4*time.Second || after > 5*time.Second {
			t.Errorf("notified %v after the break, want about 5s, when the next renewal is due", after)
		}
		if then.Before(at.Add(time.Second)) || time.Since(start) > 7*time.Second {
			t.Errorf("notified after %v; the next holder after %v, want a second later at least; Break returned after %v, want 7s at most", at.Sub(start), then.Sub(start), time.Since(start))
		}
		st, err := b.store.Inspect(t.Context(), "a")
		if err != nil || st.Broken == nil || st.Broken.Reason != "it hangs" || st.Broken.By != "me" || st.Broken.Token != token || st.Broken.At.IsZero() {
			t.Errorf("Inspect: broken %+v, %v, want the request of me", st.Broken, err)
		}
	})
}

// A break of a dead holder's lease is over when the lease has expired.
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
		if err := b.other().Operator().Break(ctx, r); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, leasehold.ErrBusy) {
			t.Errorf("Break past its deadline: %v, want DeadlineExceeded and ErrBusy", err)
		}
		start := time.Now()
		if err := b.other().Operator().Break(t.Context(), r); err != nil || time.Since(start) < 59*time.Second || time.Since(start) > time.Minute {
			t.Errorf("Break: %v after %v, want nil when the lease of 1m0s has expired", err, time.Since(start))
		}
		if err := b.other().Operator().Break(t.Context(), r); err != nil {
			t.Errorf("Break of a lease that is over: %v", err)
		}
	})
}

// A lock that nobody holds has no lease to break, unless the one that is meant was broken
// before.
func TestBreakWhatNobodyHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		lease := b.acquire(b.c.Mutex("a"))
		token := lease.Token()
		b.release(lease)
		for _, r := range []leasehold.BreakRequest{{Name: "mistyped", Token: token}, {Name: "a", Token: token}, {Name: "a", Token: token + 1, Now: true}} {
			if err := b.other().Operator().Break(t.Context(), r); !errors.Is(err, leasehold.ErrNotHeld) || !strings.Contains(err.Error(), "nobody holds lock") {
				t.Errorf("Break %+v: %v, want ErrNotHeld", r, err)
			}
		}
		second := b.acquire(b.c.Mutex("a"))
		r := leasehold.BreakRequest{Name: "a", Token: second.Token(), Now: true}
		for range 2 {
			if err := b.other().Operator().Break(t.Context(), r); err != nil {
				t.Errorf("Break %+v: %v, want no error", r, err)
			}
		}
		r.Token++
		if err := b.other().Operator().Break(t.Context(), r); !errors.Is(err, leasehold.ErrNotHeld) {
			t.Errorf("Break with a token that never was: %v, want ErrNotHeld", err)
		}
		second.Release(t.Context())
	})
}

// With Now, Break returns at once, and the lock is free.
func TestBreakNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		first := b.acquire(b.c.Mutex("a"))
		start := time.Now()
		if err := b.other().Operator().Break(t.Context(), leasehold.BreakRequest{Name: "a", Token: first.Token(), Now: true, By: "an operator", Reason: "gone"}); err != nil || time.Since(start) != 0 {
			t.Errorf("Break: %v after %v, want nil at once", err, time.Since(start))
		}
		second := b.acquire(b.other().Mutex("a"))
		<-first.Done()
		if second.Token() <= first.Token() || second.Err() != nil {
			t.Errorf("the next lease has token %v, want more than %v; error %v, want none", second.Token(), first.Token(), second.Err())
		}
		if err := context.Cause(first.Context()); !strings.Contains(err.Error(), "broken by an operator: gone") {
			t.Errorf("the broken lease: %v, want who broke it", err)
		}
		if err := first.Release(t.Context()); !errors.Is(err, leasehold.ErrLost) || !b.held("a") {
			t.Errorf("release of the broken lease: %v, want ErrLost; held: %v, want true", err, b.held("a"))
		}
		// The operator uses the token of the first holder again.
		err := b.other().Operator().Break(t.Context(), leasehold.BreakRequest{Name: "a", Token: first.Token(), Now: true})
		if !errors.Is(err, leasehold.ErrBusy) || !strings.Contains(err.Error(), second.Token().String()) || second.Err() != nil {
			t.Errorf("Break with an old token: %v, want ErrBusy that names token %v; the present lease: %v, want it held", err, second.Token(), second.Err())
		}
		b.release(second)
	})
}

// Readers share a token, so the request must also name the owner.
func TestBreakOneOfSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		one, two := b.acquire(b.c.RW("a").Read()), b.acquire(b.c.RW("a").Read())
		r := leasehold.BreakRequest{Name: "a", Token: one.Token(), Now: true}
		if err := b.other().Operator().Break(t.Context(), r); !errors.Is(err, leasehold.ErrInvalid) {
			t.Errorf("Break without an owner: %v, want ErrInvalid", err)
		}
		r.Owner = "nobody"
		if err := b.other().Operator().Break(t.Context(), r); !errors.Is(err, leasehold.ErrBusy) {
			t.Errorf("Break of another owner: %v, want ErrBusy", err)
		}
		r.Owner = one.Owner()
		if err := b.other().Operator().Break(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		<-one.Done()
		if err := two.Extend(t.Context()); err != nil {
			t.Errorf("the other reader: %v, want its lease extended", err)
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
			if err := b.other().Operator().Break(t.Context(), r); !errors.Is(err, leasehold.ErrInvalid) {
				t.Errorf("Break of %q with token %v and a reason of %d bytes: %v, want ErrInvalid", r.Name, r.Token, len(r.Reason), err)
			}
		}
		foreign := leasehold.New(store.New(strange{plain{b.store.Engine}}), nil)
		if err := foreign.Operator().Break(t.Context(), leasehold.BreakRequest{Name: "a", Token: 7}); !errors.Is(err, leasehold.ErrUnsupported) || !strings.Contains(err.Error(), "another kind of client") {
			t.Errorf("Break of the lock of another kind of client: %v, want ErrUnsupported that says so", err)
		}
		mixed := leasehold.New(store.New(mixed{plain{b.store.Engine}}), nil)
		if err := mixed.Operator().Break(t.Context(), leasehold.BreakRequest{Name: "a", Token: 7}); !errors.Is(err, leasehold.ErrUnsupported) {
			t.Errorf("Break of the lease of another kind of client: %v, want ErrUnsupported", err)
		}
		unable := leasehold.New(store.New(b.store), nil)
		if err := unable.Operator().Break(t.Context(), leasehold.BreakRequest{Name: "a", Token: lease.Token()}); !errors.Is(err, leasehold.ErrUnsupported) {
			t.Errorf("Break in a store that cannot: %v, want ErrUnsupported", err)
		}
		b.release(lease)
	})
}

// A lease can be broken while another kind of client holds the lock, too, as readers do.
func TestBreakBesideAnotherKindOfClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		lease := b.acquire(b.c.Mutex("a"))
		mixed := leasehold.New(store.New(mixed{plain{b.store.Engine}}), nil)
		if err := mixed.Operator().Break(t.Context(), leasehold.BreakRequest{Name: "a", Token: lease.Token(), Now: true}); err != nil {
			t.Errorf("Break: %v", err)
			b.release(lease)
			return
		}
		b.release(b.acquire(b.other().Mutex("a")))
		if err := lease.Release(t.Context()); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("release of the lease that was broken: %v, want ErrLost", err)
		}
	})
}

// mixed is a store in which another kind of client holds every lock first, with token 7.
type mixed struct{ store.Engine }

func (m mixed) Inspect(ctx context.Context, name string) (store.State, error) {
	st, err := m.Engine.Inspect(ctx, name)
	other := store.Holding{Holder: store.Holder{Owner: "x", Foreign: true}, Token: 7, ExpiresIn: time.Second}
	st.Holders = append([]store.Holding{other}, st.Holdings()...)
	st.Held, st.Holder, st.Token = true, other.Holder, other.Token
	return st, err
}

// strange is a store in which another kind of client holds every lock.
type strange struct{ store.Engine }

func (strange) Inspect(_ context.Context, name string) (store.State, error) {
	return store.State{Name: name, Held: true, Holder: store.Holder{Owner: "x", Foreign: true}, ExpiresIn: time.Second}, nil
}
