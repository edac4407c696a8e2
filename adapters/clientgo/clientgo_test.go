package clientgo_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/klog/v2"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/adapters/clientgo"
	"github.com/leasehold-dev/leasehold/clock"
	"github.com/leasehold-dev/leasehold/internal/testenv/virtual"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

// network is the network between one candidate and the store.
type network struct {
	store.Engine
	slow atomic.Int64 // what each answer takes, in nanoseconds
	down atomic.Bool  // nothing arrives, and no answer comes
}

// Caps implements driver.Engine: without a queue, every attempt is an Acquire.
func (n *network) Caps() store.Caps {
	c := n.Engine.Caps()
	c.NoQueue = true
	return c
}

// through returns at once, or blocks until the caller gives up if the network is down.
func (n *network) through(ctx context.Context) error {
	if n.down.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

// answer delays an answer.
func (n *network) answer(ctx context.Context) error {
	select {
	case <-time.After(time.Duration(n.slow.Load())):
		return n.through(ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (n *network) Acquire(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
	if err := n.through(ctx); err != nil {
		return store.Grant{}, err
	}
	g, err := n.Engine.Acquire(ctx, r)
	if late := n.answer(ctx); late != nil {
		return store.Grant{}, late
	}
	return g, err
}

func (n *network) Renew(ctx context.Context, leases []store.Lease) []error {
	errs := make([]error, len(leases))
	err := n.through(ctx)
	if err == nil {
		errs = n.Engine.Renew(ctx, leases)
		err = n.answer(ctx)
	}
	for i := range errs {
		if err != nil {
			errs[i] = err
		}
	}
	return errs
}

func (n *network) Release(ctx context.Context, r store.ReleaseRequest) error {
	if err := n.through(ctx); err != nil {
		return err
	}
	err := n.Engine.Release(ctx, r)
	if late := n.answer(ctx); late != nil {
		return late
	}
	return err
}

func (n *network) Inspect(ctx context.Context, name string) (store.State, error) {
	if err := n.through(ctx); err != nil {
		return store.State{}, err
	}
	st, err := n.Engine.Inspect(ctx, name)
	if late := n.answer(ctx); late != nil {
		return store.State{}, late
	}
	return st, err
}

// election records who leads among the candidates of a test, in virtual time.
type election struct {
	t     *testing.T
	store *store.Store
	clock clock.Clock

	mu      sync.Mutex
	leaders []string // present ones
	terms   []string // names, in the order of their terms
	ended   time.Time
	token   leasehold.Token
}

func newElection(t *testing.T) *election {
	clock := virtual.Clock()
	return &election{t: t, clock: clock, store: memstore.New(&memstore.Options{Clock: clock})}
}

// candidate is one elector.
type candidate struct {
	*clientgo.Lock
	network *network
	stop    context.CancelFunc
	done    chan struct{} // closed when Run has returned
}

// ended waits until c neither leads nor contends, and fails the test if it does not end.
func (c *candidate) ended(t *testing.T) {
	t.Helper()
	select {
	case <-c.done:
	case <-time.After(time.Hour):
		t.Errorf("%s has not ended after an hour, want it to", c.Identity())
		c.stop()
		<-c.done
	}
}

// run runs a candidate of that name until it is stopped, or stops leading. As long as it
// leads, it is among the leaders.
func (e *election) run(name string, o clientgo.Options, change func(*leaderelection.LeaderElectionConfig)) *candidate {
	e.t.Helper()
	n := &network{Engine: e.store}
	o.Identity = name
	lock, err := clientgo.New(leasehold.New(store.New(n), &leasehold.Options{Clock: e.clock}), "controller", &o)
	if err != nil {
		e.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	c := &candidate{Lock: lock, network: n, stop: stop, done: make(chan struct{})}
	e.start(ctx, c, change)
	return c
}

func (e *election) start(ctx context.Context, c *candidate, change func(*leaderelection.LeaderElectionConfig)) {
	config := c.Config()
	config.ReleaseOnCancel = true
	config.Callbacks.OnStartedLeading = func(ctx context.Context) {
		e.begin(c)
		<-ctx.Done()
		e.mu.Lock()
		defer e.mu.Unlock()
		e.leaders, e.ended = nil, time.Now()
	}
	config.Callbacks.OnStoppedLeading = func() {}
	if change != nil {
		change(&config)
	}
	elector, err := leaderelection.NewLeaderElector(config)
	if err != nil {
		e.t.Fatal(err)
	}
	go func() {
		defer close(c.done)
		elector.Run(klog.NewContext(ctx, klog.Logger{})) // without its log
	}()
}

// begin adds a leader.
func (e *election) begin(c *candidate) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.leaders) > 0 {
		e.t.Errorf("%s leads beside %q, want no other leader", c.Identity(), e.leaders)
	}
	if token := c.Token(); token <= e.token {
		e.t.Errorf("%s leads with token %v after token %v, want a larger one", c.Identity(), token, e.token)
	} else {
		e.token = token
	}
	e.leaders, e.terms = append(e.leaders, c.Identity()), append(e.terms, c.Identity())
}

// state returns the present leaders, the terms until now, and when the last one ended.
func (e *election) state() (leaders, terms []string, ended time.Time) {
	synctest.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.leaders), slices.Clone(e.terms), e.ended
}

// leads waits until a candidate of that name leads for the n-th term.
func (e *election) leads(name string, n int) {
	e.t.Helper()
	leaders, terms, _ := e.state()
	for range 600 {
		if len(leaders) > 0 && len(terms) >= n {
			break
		}
		time.Sleep(100 * time.Millisecond)
		leaders, terms, _ = e.state()
	}
	if len(leaders) != 1 || leaders[0] != name || len(terms) != n {
		e.t.Errorf("leaders %q after the terms %q; want %s in term %d", leaders, terms, name, n)
	}
}

// end stops the candidates.
func (e *election) end(all ...*candidate) {
	for _, c := range all {
		c.network.down.Store(false)
		c.stop()
		c.ended(e.t)
	}
	e.store.Close()
	synctest.Wait()
}

// A leader that is stopped releases the lease, and the other candidate leads within the
// time between its attempts.
func TestReleaseOnCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newElection(t)
		a := e.run("a", clientgo.Options{}, nil)
		e.leads("a", 1)
		b := e.run("b", clientgo.Options{}, nil)
		time.Sleep(time.Minute)
		if _, terms, _ := e.state(); len(terms) != 1 {
			t.Errorf("after a minute the terms are %q, want one", terms)
		}
		if r, _, err := b.Get(t.Context()); err != nil || r.HolderIdentity != "a" {
			t.Errorf("the second sees %+v (%v), want a as holder", r, err)
		}
		a.stop()
		a.ended(t)
		stopped := time.Now()
		e.leads("b", 2)
		if took := time.Since(stopped); took > 5*time.Second {
			t.Errorf("no candidate led for %v, want 5s at most", took)
		}
		if a.Token() != 0 {
			t.Errorf("the first has token %v after its term, want 0", a.Token())
		}
		e.end(a, b)
	})
}

// Without ReleaseOnCancel the lease ends by its TTL, and the same candidate may go on with
// it.
func TestLeaseThatIsNotReleased(t *testing.T) {
	keeps := func(c *leaderelection.LeaderElectionConfig) { c.ReleaseOnCancel = false }
	synctest.Test(t, func(t *testing.T) {
		e := newElection(t)
		a := e.run("a", clientgo.Options{Lost: func(err error) { t.Error(err) }}, keeps)
		e.leads("a", 1)
		a.stop()
		a.ended(t)
		stopped := time.Now()
		b := e.run("b", clientgo.Options{}, keeps)
		e.leads("b", 2)
		if took := time.Since(stopped); took < 10*time.Second || took > 20*time.Second {
			t.Errorf("no candidate led for %v, want about the TTL", took)
		}
		b.stop()
		b.ended(t)
		e.state()

		ctx, stop := context.WithCancel(context.Background())
		stopped, b.stop, b.done = time.Now(), stop, make(chan struct{})
		e.token-- // the lease is the same
		e.start(ctx, b, nil)
		e.leads("b", 3)
		if took := time.Since(stopped); took > time.Second {
			t.Errorf("the candidate that has the lease led after %v, want 1s at most", took)
		}
		e.end(a, b)
	})
}

// A leader that is cut off from the store has stopped before another leads, whenever that
// happens, however slow the store was before, and although it would release the lease when
// it stops.
func TestCutOff(t *testing.T) {
	for _, slow := range []time.Duration{0, 500 * time.Millisecond, 1900 * time.Millisecond, 2500 * time.Millisecond, 4 * time.Second} {
		for after := time.Duration(0); after < 7*time.Second; after += 700 * time.Millisecond {
			synctest.Test(t, func(t *testing.T) {
				e := newElection(t)
				a := e.run("a", clientgo.Options{}, nil)
				e.leads("a", 1)
				b := e.run("b", clientgo.Options{}, nil)
				a.network.slow.Store(int64(slow))
				time.Sleep(5*time.Second + after)
				a.network.down.Store(true)
				e.leads("b", 2) // fails the test if a still leads
				_, _, ended := e.state()
				if pause := time.Since(ended); pause < 500*time.Millisecond {
					t.Errorf("slow %v, cut after %v: the second led %v after the first had stopped, want 500ms at least", slow, after, pause)
				}
				a.ended(t)
				e.end(a, b)
			})
		}
	}
}

// A leader of a store that answers too late stops, although the store renews its lease.
func TestSlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newElection(t)
		a := e.run("a", clientgo.Options{}, nil)
		e.leads("a", 1)
		a.network.slow.Store(int64(4 * time.Second))
		a.ended(t)
		if leaders, _, _ := e.state(); len(leaders) > 0 {
			t.Errorf("leaders %q of a slow store, want none", leaders)
		}
		e.end(a)
	})
}

// A leader whose lease an operator breaks learns of it, stops, and does not take another
// lease in the same term.
func TestLost(t *testing.T) {
	for _, notified := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			e := newElection(t)
			var a *candidate
			lost := make(chan error, 1)
			o := clientgo.Options{}
			if notified {
				o.Lost = func(err error) { lost <- err; a.stop() }
			}
			a = e.run("a", o, nil)
			e.leads("a", 1)
			time.Sleep(10 * time.Second)
			broken := time.Now()
			err := leasehold.New(e.store, &leasehold.Options{Clock: e.clock}).Operator().Break(t.Context(), leasehold.BreakRequest{Name: "controller", Token: a.Token(), Now: true})
			if err != nil {
				t.Error(err)
				a.stop()
			}
			a.ended(t)
			switch took := time.Since(broken); {
			case notified && took > 3*time.Second, took > 13*time.Second:
				t.Errorf("with Lost %v: it stopped leading after %v, want 3s at most with Lost, and 13s without", notified, took)
			case notified:
				if err := <-lost; !errors.Is(err, leasehold.ErrLost) {
					t.Errorf("lost with %v, want %v", err, leasehold.ErrLost)
				}
			}
			if leaders, terms, _ := e.state(); len(leaders) > 0 || len(terms) != 1 {
				t.Errorf("after the loss the leaders are %q and the terms %q, want no leader and one term", leaders, terms)
			}

			ctx, stop := context.WithCancel(context.Background())
			a.stop, a.done = stop, make(chan struct{})
			e.start(ctx, a, nil)
			e.leads("a", 2)
			e.end(a)
		})
	}
}

// A process of the same name is another candidate.
func TestSameIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newElection(t)
		a := e.run("a", clientgo.Options{}, nil)
		e.leads("a", 1)
		b := e.run("a", clientgo.Options{}, nil)
		time.Sleep(time.Minute)
		if _, terms, _ := e.state(); len(terms) != 1 || b.Token() != 0 {
			t.Errorf("terms %q, token %v, want one term, and no token of the second", terms, b.Token())
		}
		if r, _, err := b.Get(t.Context()); err != nil || r.HolderIdentity == "a" {
			t.Errorf("the second sees %+v (%v), want another identity as holder", r, err)
		}
		e.end(a, b)
	})
}

// An elector whose durations are not those of the lock does not lead, or not for long.
func TestOtherDurations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newElection(t)
		a := e.run("a", clientgo.Options{}, func(c *leaderelection.LeaderElectionConfig) { c.LeaseDuration = 30 * time.Second })
		time.Sleep(time.Minute)
		if _, terms, _ := e.state(); len(terms) > 0 {
			t.Errorf("terms %q with another LeaseDuration, want none", terms)
		}
		a.stop()
		a.ended(t)
		b := e.run("b", clientgo.Options{}, func(c *leaderelection.LeaderElectionConfig) { c.RenewDeadline = 12 * time.Second })
		b.ended(t)
		if leaders, _, _ := e.state(); len(leaders) > 0 {
			t.Errorf("leaders %q with another RenewDeadline, want none", leaders)
		}
		e.end(a, b)
	})
}

func TestOptions(t *testing.T) {
	st := memstore.New(nil)
	defer st.Close()
	c := leasehold.New(st, nil)
	for _, o := range []clientgo.Options{
		{LeaseDuration: 12 * time.Second},
		{RenewDeadline: 13 * time.Second},
		{RetryPeriod: 5 * time.Second},
		{Notice: 3 * time.Second},
		{Notice: -1},
		{RetryPeriod: -1},
	} {
		if _, err := clientgo.New(c, "controller", &o); !errors.Is(err, leasehold.ErrInvalid) {
			t.Errorf("%+v: %v, want %v", o, err, leasehold.ErrInvalid)
		}
	}
	a, err := clientgo.New(c, "controller", nil)
	if err != nil {
		t.Fatal(err)
	}
	b, err := clientgo.New(c, "controller", nil)
	if err != nil || a.Identity() == b.Identity() {
		t.Errorf("two candidates have the identities %q and %q (%v), want different ones", a.Identity(), b.Identity(), err)
	}
}

func ExampleNew() {
	st := memstore.New(nil)
	defer st.Close()
	lock, err := clientgo.New(leasehold.New(st, nil), "controller", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{})) // without a log
	done := make(chan struct{})
	config := lock.Config()
	config.ReleaseOnCancel = true
	config.Callbacks = leaderelection.LeaderCallbacks{
		OnStartedLeading: func(context.Context) {
			fmt.Println("leading with token", lock.Token())
			cancel()
			close(done)
		},
		OnStoppedLeading: func() {},
	}
	leaderelection.RunOrDie(ctx, config)
	<-done
	// Output: leading with token 1
}
