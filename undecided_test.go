package leasehold_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store"
)

// doubtful is a store in which a lease that is held is undecided while unsure is set.
type doubtful struct {
	store.Engine
	unsure atomic.Bool
	beside atomic.Bool  // another lease, which is older, is undecided too
	ahead  atomic.Int32 // how much larger tokens are shown while a lease is undecided
	misses atomic.Int32 // how many breaks are still to find no lease
}

func (d *doubtful) Inspect(ctx context.Context, name string) (store.State, error) {
	st, err := d.Engine.Inspect(ctx, name)
	if !d.unsure.Load() {
		return st, err
	}
	silent := []store.NodeOutcome{{Node: "n1", Outcome: store.TimedOut}}
	leases := st.Leases()
	for i := range leases {
		if ahead := leasehold.Token(d.ahead.Load()); ahead != 0 {
			leases[i].OtherTokens = []leasehold.Token{leases[i].Token}
			leases[i].Token += ahead
		}
	}
	if d.beside.Load() {
		leases = append([]store.Holding{{Holder: store.Holder{Owner: "other", Purpose: "other"}, Token: 1, ExpiresIn: time.Second}}, leases...)
	}
	return store.State{Name: name, Undecided: leases, Nodes: silent}, err
}

func (d *doubtful) BreakLease(ctx context.Context, r store.BreakRequest) (time.Duration, error) {
	if d.misses.Add(-1) >= 0 {
		return 0, store.ErrNotHeld
	}
	return d.Engine.BreakLease(ctx, r)
}

// replaced is a store in which something happens between a look at a lease and its break.
type replaced struct {
	store.Engine
	before func()
}

func (r replaced) BreakLease(ctx context.Context, q store.BreakRequest) (time.Duration, error) {
	r.before()
	return r.Engine.BreakLease(ctx, q)
}

// A reader leaves while its lease is broken. The break then ends with ErrBusy, and does not wait
// for another reader that has the same token by now.
func TestBreakOfAReaderThatLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		first := b.acquire(b.c.RW("a").Read())
		var next *leasehold.Lease
		leaves := sync.OnceFunc(func() {
			next = b.acquire(b.other().RW("a").Read())
			b.release(first)
		})
		c := leasehold.New(store.New(replaced{plain{b.store.Engine}, leaves}), &leasehold.Options{Clock: b.clock})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := c.Operator().Break(ctx, leasehold.BreakRequest{Name: "a", Token: first.Token()})
		if next.Token() != first.Token() {
			t.Fatalf("the readers have tokens %v and %v, want the same", first.Token(), next.Token())
		}
		if !errors.Is(err, leasehold.ErrBusy) || ctx.Err() != nil || next.Err() != nil {
			t.Errorf("Break: %v; its context: %v; the other reader: %v; want ErrBusy, and neither", err, ctx.Err(), next.Err())
		}
		b.release(next)
	})
}

// A leader that becomes undecided is no change for observers, and neither is it when the servers
// decide that it leads. A leader that is undecided when they first see it is yielded as such, and
// once more when it is known to lead.
func TestObserveUndecidedLeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		d := &doubtful{Engine: plain{b.store.Engine}}
		e := leasehold.New(store.New(d), &leasehold.Options{Clock: b.clock}).Election("a")
		seen := make(chan string, 100)
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() {
			defer close(over)
			for l, err := range e.Observe(ctx) {
				seen <- fmt.Sprintf("%s %t %v", l.Holder.Purpose, l.Undecided, err)
			}
		}()
		sees := func(when string, want ...string) {
			t.Helper()
			time.Sleep(time.Minute)
			for _, w := range want {
				select {
				case got := <-seen:
					if got != w {
						t.Errorf("%s: observed (leader, undecided, error) %q, want %q", when, got, w)
					}
				default:
					t.Errorf("%s: observed nothing, want %q", when, w)
				}
			}
			select {
			case got := <-seen:
				t.Errorf("%s: observed %q, want no further change", when, got)
			default:
			}
		}
		leads := func(purpose string) *leasehold.Lease {
			return b.acquire(b.c.Mutex("a").With(leasehold.LockOptions{Purpose: purpose}))
		}
		sees("nobody leads", " false <nil>")
		first := leads("first")
		sees("the first leads", "first false <nil>")
		d.ahead.Store(5)
		d.unsure.Store(true)
		sees("it is undecided, and shown with another token")
		d.beside.Store(true)
		sees("another one is undecided as well")
		d.beside.Store(false)
		d.unsure.Store(false)
		sees("it leads still")
		d.unsure.Store(true)
		b.release(first)
		sees("the first is certainly over", " false <nil>")
		second := leads("second")
		sees("the second is undecided", "second true <nil>")
		d.unsure.Store(false)
		sees("the second leads", "second false <nil>")
		d.unsure.Store(true)
		sees("it is undecided")
		b.release(second)
		sees("the second is over", " false <nil>")
		sharers := b.acquire(b.c.Semaphore("a", 2))
		sees("another kind of lock is undecided")
		b.release(sharers)
		cancel()
		<-over
	})
}

// A lease that a break does not find is looked for again, since a server may have answered in
// between that does not answer now.
func TestBreakLooksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		d := &doubtful{Engine: plain{b.store.Engine}}
		d.unsure.Store(true)
		d.misses.Store(2)
		lease := b.acquire(b.c.Mutex("a"))
		c := leasehold.New(store.New(d), &leasehold.Options{Clock: b.clock})
		if err := c.Operator().Break(t.Context(), leasehold.BreakRequest{Name: "a", Token: lease.Token(), Now: true}); err != nil || b.held("a") {
			t.Fatalf("Break: %v; held: %v, want free", err, b.held("a"))
		}
		<-lease.Done()
		d.misses.Store(1 << 20)
		again := b.acquire(b.c.Mutex("a"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := c.Operator().Break(ctx, leasehold.BreakRequest{Name: "a", Token: again.Token()})
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, leasehold.ErrBusy) {
			t.Errorf("Break that never finds the lease: %v, want DeadlineExceeded, and not ErrBusy, since nothing was broken", err)
		}
		b.release(again)
	})
}

// A lease whose token is not shown any more, since another server answers, is still broken by it.
func TestBreakByATokenThatIsNotShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		d := &doubtful{Engine: plain{b.store.Engine}}
		d.unsure.Store(true)
		d.ahead.Store(5)
		c := leasehold.New(store.New(d), &leasehold.Options{Clock: b.clock})
		lease := b.acquire(b.c.Mutex("a"))
		if err := c.Operator().Break(t.Context(), leasehold.BreakRequest{Name: "a", Token: lease.Token() + 1}); !errors.Is(err, leasehold.ErrBusy) {
			t.Errorf("Break with a token of nobody: %v, want ErrBusy", err)
		}
		if err := c.Operator().Break(t.Context(), leasehold.BreakRequest{Name: "a", Token: lease.Token(), Now: true}); err != nil || b.held("a") {
			t.Errorf("Break: %v; held: %v, want free", err, b.held("a"))
		}
		<-lease.Done()
	})
}

// shows is a store that shows a lock as state has it, and whose breaks do nothing.
type shows struct {
	store.Engine
	state store.State
	asked string // the owner whose lease was to be broken last
}

func (s *shows) Inspect(context.Context, string) (store.State, error) { return s.state, nil }

func (s *shows) BreakLease(_ context.Context, r store.BreakRequest) (time.Duration, error) {
	s.asked = r.Owner
	return 0, nil
}

// The lease that is shown with a token is meant rather than one of which a server has that token.
func TestBreakPrefersTheTokenThatIsShown(t *testing.T) {
	b := newBench(t)
	lease := func(owner string, token leasehold.Token, others ...leasehold.Token) store.Holding {
		return store.Holding{Holder: store.Holder{Owner: owner}, Token: token, OtherTokens: others, ExpiresIn: time.Second, Weight: 1}
	}
	s := &shows{Engine: plain{b.store.Engine}, state: store.State{
		Name: "a", Held: true, Kind: store.ReadWrite, Holders: []store.Holding{lease("first", 5, 7, 9), lease("second", 7, 8, 9)},
	}}
	c := leasehold.New(store.New(s), &leasehold.Options{Clock: b.clock})
	for _, want := range []struct {
		token leasehold.Token
		owner string
	}{{5, "first"}, {7, "second"}, {8, "second"}} {
		if err := c.Operator().Break(t.Context(), leasehold.BreakRequest{Name: "a", Token: want.token}); err != nil || s.asked != want.owner {
			t.Errorf("Break with token %v: %v, of the lease of %q, want of %q", want.token, err, s.asked, want.owner)
		}
	}
	if err := c.Operator().Break(t.Context(), leasehold.BreakRequest{Name: "a", Token: 9}); !errors.Is(err, leasehold.ErrInvalid) {
		t.Errorf("Break with a token of two leases: %v, want ErrInvalid", err)
	}
}
