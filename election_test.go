package leasehold_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

// candidate is one call of Election.Run.
type candidate struct {
	term   chan *leasehold.Lease // the lease of each term
	leave  chan error            // the result of its function
	cancel context.CancelFunc
	done   chan error
}

// runs starts a candidate, and returns when it leads or waits.
func (b *bench) runs(e *leasehold.Election) *candidate {
	ctx, cancel := context.WithCancel(b.t.Context())
	c := &candidate{make(chan *leasehold.Lease, 1), make(chan error), cancel, make(chan error, 1)}
	go func() {
		c.done <- e.Run(ctx, func(ctx context.Context, l *leasehold.Lease) error {
			if ctx != l.Context() {
				b.t.Error("the context of a term is not that of its lease")
			}
			c.term <- l
			return <-c.leave
		})
	}()
	synctest.Wait()
	return c
}

// leads reports whether the candidate has a term that the test has not received yet.
func (c *candidate) leads() bool {
	synctest.Wait()
	return len(c.term) == 1
}

// The timers of a suspended machine stand still. After it resumes, Err reports at once that
// the term is over.
func TestElectionErrReadsTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		e := b.c.Election("a")
		c := b.runs(e)
		term := <-c.term
		if err := term.Err(); err != nil {
			t.Errorf("Err while the term lasts: %v, want nil", err)
		}
		b.clock.suspend(time.Hour)
		if err := term.Err(); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("Err right after the machine resumed: %v, want %v", err, leasehold.ErrLost)
		}
		c.cancel()
		c.leave <- nil
		<-c.done
	})
}

// A candidate leads as long as its function runs. It resigns when its context ends,
// and the next one leads at once.
func TestElection(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		mine, other := b.c.Election("a"), b.strangers().Election("a")
		first, second, third := b.runs(mine), b.runs(other), b.runs(mine)
		term := <-first.term
		if second.leads() || third.leads() || term.Token() == 0 {
			t.Fatalf("the others lead: %v, %v, want neither; token of the term %v, want one", second.leads(), third.leads(), term.Token())
		}
		first.cancel()
		if <-term.Context().Done(); second.leads() {
			t.Fatal("the next candidate leads before the function of the first has returned")
		}
		first.leave <- nil
		if err := <-first.done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run, after its context ended: %v, want Canceled", err)
		}
		next := <-second.term
		if next.Token() <= term.Token() {
			t.Errorf("the next term has token %v, want more than %v", next.Token(), term.Token())
		}
		second.leave <- nil
		if err := <-second.done; err != nil {
			t.Errorf("Run, after its function returned nil: %v, want nil", err)
		}
		<-third.term
		third.leave <- nil
		if err := <-third.done; err != nil || b.held("a") {
			t.Errorf("the last Run: %v, want nil; held afterwards: %v, want free", err, b.held("a"))
		}
	})
}

// A leader that is done is done, also if the store does not confirm that it resigned.
func TestElectionWhoseReleaseFails(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		c := b.runs(b.c.Election("a").With(short))
		<-c.term
		b.store.onRelease(func(context.Context, store.ReleaseRequest) error { return store.ErrAmbiguous })
		c.leave <- nil
		if err := <-c.done; err != nil {
			t.Errorf("Run, after its function returned nil: %v, want nil", err)
		}
		b.store.onRelease(nil)
	})
}

// A candidate contends again, after a growing pause, if its function fails.
func TestElectionAfterAnError(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		c := b.runs(b.c.Election("a"))
		var pauses []time.Duration
		for range 12 {
			<-c.term
			at := time.Now()
			c.leave <- errors.New("failed")
			term := <-c.term
			pauses = append(pauses, time.Since(at))
			c.term <- term
		}
		<-c.term
		if first, last := pauses[0], pauses[len(pauses)-1]; first > 100*time.Millisecond || last < 7*time.Second || last > 15*time.Second {
			t.Errorf("pauses of %v, want the first below 100ms and the last about 10s", pauses)
		}
		time.Sleep(time.Minute) // a long term
		at := time.Now()
		c.leave <- errors.New("failed")
		if <-c.term; time.Since(at) > 100*time.Millisecond {
			t.Errorf("a pause of %v after a long term, want 100ms at most", time.Since(at))
		}
		c.leave <- nil
		<-c.done
	})
}

// The context of a leader that loses the lock ends with ErrLost. The candidate contends
// again, even if its function returns nil, but not before that function has returned.
func TestElectionAfterALoss(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		e := b.c.Election("a")
		c := b.runs(e)
		term := <-c.term
		b.store.onRenew(all(store.ErrNotHeld))
		if <-term.Context().Done(); !errors.Is(term.Err(), leasehold.ErrLost) {
			t.Errorf("the term ended with %v, want ErrLost", term.Err())
		}
		b.store.onRenew(nil)
		time.Sleep(time.Minute)
		if c.leads() {
			t.Error("a second term before the function of the first has returned")
		}
		c.leave <- nil
		next := <-c.term
		if next.Token() <= term.Token() {
			t.Errorf("the next term has token %v, want more than %v", next.Token(), term.Token())
		}
		c.leave <- nil
		<-c.done
	})
}

// While the store is unreachable, a candidate goes on trying, for longer than Acquire
// would. Run returns errors that trying again cannot mend.
func TestElectionWithAStoreInTrouble(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		b.store.onAcquire(func(context.Context, store.AcquireRequest) (store.Grant, error) { return store.Grant{}, errNodesAway })
		b.waiter.onWait(func(ctx context.Context, _ store.WaitRequest, reason func(error)) (store.Grant, error) {
			return store.Grant{}, errNodesAway
		})
		c := b.runs(b.c.Election("a"))
		time.Sleep(time.Hour)
		if c.leads() || len(c.done) > 0 {
			t.Fatalf("without a store for an hour: elected %v, Run returned %v, want neither", c.leads(), len(c.done) > 0)
		}
		b.store.onAcquire(nil)
		b.waiter.onWait(nil)
		<-c.term
		c.leave <- nil
		<-c.done

		never := func(context.Context, *leasehold.Lease) error { t.Error("elected, want an error of Run"); return nil }
		held := b.acquire(b.c.Semaphore("s", 2))
		for _, x := range []struct {
			e  *leasehold.Election
			is error
		}{
			{b.c.Election(""), leasehold.ErrInvalid},
			{b.c.Election("a").With(leasehold.LockOptions{Owner: "me"}), leasehold.ErrInvalid},
			{b.c.Election("a").With(leasehold.LockOptions{Require: store.Consensus}), leasehold.ErrUnsupported},
			{b.c.Election("s"), leasehold.ErrKindMismatch},
		} {
			if err := x.e.Run(t.Context(), never); !errors.Is(err, x.is) {
				t.Errorf("Run: %v, want %v", err, x.is)
			}
		}
		if _, err := b.c.Election("s").Leader(t.Context()); !errors.Is(err, leasehold.ErrKindMismatch) || !strings.Contains(err.Error(), "semaphore of 2") {
			t.Errorf("the leader of a semaphore: %v, want ErrKindMismatch that names it", err)
		}
		b.release(held)
	})
}

// For hours, candidates fail, panic, lose the lock, and start again. Never do two of them
// lead, and never is there no leader for long.
func TestElectionsGoOn(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		var mu sync.Mutex
		var last leasehold.Token
		leading, terms, vacant := 0, make(map[int]int), time.Now()
		rng := rand.New(rand.NewPCG(1, 2))
		denied := errors.New("no")
		b.store.onRenew(func(ctx context.Context, rs []store.Lease) []error {
			mu.Lock()
			lose := rng.IntN(40) == 0
			mu.Unlock()
			if lose {
				return all(store.ErrNotHeld)(ctx, rs)
			}
			return b.store.Engine.Renew(ctx, rs)
		})
		ctx, cancel := context.WithTimeout(t.Context(), 6*time.Hour)
		defer cancel()
		var wg sync.WaitGroup
		for n, c := range []*leasehold.Client{b.c, b.c, b.strangers()} {
			e := c.Election("a")
			lead := func(ctx context.Context, l *leasehold.Lease) error {
				mu.Lock()
				leading++
				terms[n]++
				gap := time.Since(vacant)
				if leading > 1 || gap > 2*time.Minute || l.Token() <= last {
					t.Errorf("%d leaders at once, want 1; %v after the last term, want 2m0s at most; token %v, want more than %v", leading, gap, l.Token(), last)
				}
				last = l.Token()
				for_, how := time.Duration(rng.IntN(120))*time.Second, rng.IntN(4)
				mu.Unlock()
				select {
				case <-ctx.Done():
				case <-time.After(for_):
				}
				mu.Lock()
				leading--
				vacant = time.Now()
				mu.Unlock()
				switch how {
				case 0:
					return denied
				case 1:
					panic(denied)
				case 2:
					runtime.Goexit()
				}
				return ctx.Err()
			}
			wg.Go(func() {
				for ctx.Err() == nil {
					ended := make(chan struct{}) // a panic or Goexit ends a candidate, and the loop starts another
					go func() {
						defer close(ended)
						defer func() { recover() }()
						e.Run(ctx, lead)
					}()
					<-ended
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		if len(terms) != 3 || terms[0] < 20 || terms[2] < 20 || b.held("a") {
			t.Errorf("terms of each of 3 candidates: %v, want 20 at least; held at the end: %v, want free", terms, b.held("a"))
		}
	})
}

// Leader names the leader and since when it leads, also if it had to wait for its term.
// Observe yields each change, and each error once.
func TestLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		e := b.c.Election("a")
		look := &looks{Engine: b.store}
		watch := leasehold.New(store.New(look), &leasehold.Options{Clock: b.clock}).Election("a")
		if l, err := watch.Leader(t.Context()); err != nil || !l.Vacant() {
			t.Errorf("Leader before the first term: %+v, %v, want a vacancy", l, err)
		}
		seen := make(chan leasehold.Leader)
		failed := make(chan error)
		ctx, cancel := context.WithCancel(t.Context())
		var over sync.WaitGroup
		over.Go(func() {
			for l, err := range watch.Observe(ctx) {
				if err != nil {
					failed <- err
				} else {
					seen <- l
				}
			}
		})
		if l := <-seen; !l.Vacant() {
			t.Errorf("observed %+v before the first term, want a vacancy", l)
		}
		first := b.runs(e)
		term := <-first.term
		if l := <-seen; l.Token != term.Token() {
			t.Errorf("observed %+v, want the first leader with token %v", l, term.Token())
		}
		second := b.runs(b.other().Election("a").With(leasehold.LockOptions{Purpose: "second"}))
		time.Sleep(time.Hour)
		first.leave <- nil
		elected := time.Now()
		<-second.term
		l := <-seen
		if l.Holder.Purpose != "second" || l.Token <= term.Token() || l.Since.Sub(elected).Abs() > time.Second || !l.Holder.Since.Before(elected.Add(-50*time.Minute)) {
			t.Errorf("observed %+v, want the second leader, elected at %v after a wait of an hour", l, elected)
		}
		look.fail(errNodesAway)
		if err := <-failed; !errors.Is(err, leasehold.ErrQuorum) {
			t.Errorf("observed the error %v, want ErrQuorum", err)
		}
		time.Sleep(time.Minute) // a second error would block the observer, and hide the next leader
		look.fail(nil)
		if again := <-seen; again.Token != l.Token {
			t.Errorf("observed %+v after the error, want the same leader with token %v", again, l.Token)
		}
		second.leave <- nil
		if l := <-seen; !l.Vacant() {
			t.Errorf("observed %+v after the last term, want a vacancy", l)
		}
		look.fail(store.ErrClosed)
		if err := <-failed; !errors.Is(err, store.ErrClosed) {
			t.Errorf("observed the error %v, want ErrClosed", err)
		}
		over.Wait() // ErrClosed ends Observe
		cancel()
		for l, err := range watch.Observe(ctx) {
			t.Errorf("observed %v, %v with an ended context, want nothing", l, err)
		}
		<-first.done
		<-second.done
	})
}

// looks is a store whose Inspect can fail.
type looks struct {
	store.Engine
	mu  sync.Mutex
	err error
}

func (s *looks) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *looks) Inspect(ctx context.Context, name string) (store.State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return store.State{}, s.err
	}
	return s.Engine.Inspect(ctx, name)
}

// An election needs no queue in the store.
func TestElectionWithoutAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := memstore.New(nil)
		defer m.Close()
		plain := mutexesOnly{scripted(m)}
		first, second := leasehold.New(store.New(plain), nil).Election("a"), leasehold.New(store.New(plain), nil).Election("a")
		b := &bench{t: t}
		one, two := b.runs(first), b.runs(second)
		<-one.term
		one.leave <- nil
		<-two.term
		two.leave <- nil
		if err := errors.Join(<-one.done, <-two.done); err != nil {
			t.Error(err)
		}
	})
}
