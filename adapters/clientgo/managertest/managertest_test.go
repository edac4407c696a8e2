package managertest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/adapters/clientgo"
	"github.com/leasehold-dev/leasehold/clock"
	"github.com/leasehold-dev/leasehold/internal/testenv/adaptertest"
	"github.com/leasehold-dev/leasehold/internal/testenv/virtual"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

// noCluster is the way to an API server that does not exist. A manager without
// controllers has nothing to ask it, and its election must not add anything.
type noCluster struct{ t *testing.T }

func (n noCluster) RoundTrip(r *http.Request) (*http.Response, error) {
	n.t.Errorf("a manager asks the API server: %s %s", r.Method, r.URL)
	return nil, errors.New("there is no API server")
}

// election is what the managers of a test tell, in virtual time.
type election struct {
	t     *testing.T
	store *store.Store
	clock clock.Clock

	mu     sync.Mutex
	leader string   // whose controller runs
	terms  []string // names, in the order of their terms
	ended  time.Time
	token  leasehold.Token
}

func newElection(t *testing.T) *election {
	clock := virtual.Clock()
	return &election{t: t, clock: clock, store: memstore.New(&memstore.Options{Clock: clock})}
}

// candidate is one manager.
type candidate struct {
	*clientgo.Lock
	cut  *adaptertest.Cut
	stop context.CancelFunc
	done chan struct{} // closed when Start has returned
	err  error         // what Start returned
}

// ended waits until c has ended, and returns what Start returned.
func (c *candidate) ended(t *testing.T) error {
	t.Helper()
	select {
	case <-c.done:
	case <-time.After(time.Hour):
		t.Errorf("%s goes on", c.Identity())
		c.stop()
		<-c.done
	}
	return c.err
}

// run runs a manager until it is stopped, or stops by itself. Its controller takes that
// long to end.
func (e *election) run(name string, o clientgo.Options, lasts time.Duration, change func(*manager.Options)) *candidate {
	e.t.Helper()
	cut := adaptertest.CutOff(e.store)
	o.Identity = name
	lock, err := clientgo.New(leasehold.New(store.New(cut), &leasehold.Options{Clock: e.clock}), "controller", &o)
	if err != nil {
		e.t.Fatal(err)
	}
	durations := lock.Config()
	options := manager.Options{
		LeaderElection:                      true,
		LeaderElectionResourceLockInterface: lock,
		LeaderElectionReleaseOnCancel:       true,
		LeaseDuration:                       &durations.LeaseDuration,
		RenewDeadline:                       &durations.RenewDeadline,
		RetryPeriod:                         &durations.RetryPeriod,
		Metrics:                             metricsserver.Options{BindAddress: "0"}, // none
		Logger:                              logr.FromSlogHandler(slog.DiscardHandler),
	}
	if change != nil {
		change(&options)
	}
	m, err := manager.New(&rest.Config{
		Host:          "http://cluster.invalid",
		WrapTransport: func(http.RoundTripper) http.RoundTripper { return noCluster{e.t} },
	}, options)
	if err != nil {
		e.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	c := &candidate{Lock: lock, cut: cut, stop: stop, done: make(chan struct{})}
	err = m.Add(manager.RunnableFunc(func(ctx context.Context) error {
		e.begin(c)
		<-ctx.Done()
		time.Sleep(lasts)
		e.end(c)
		return nil
	}))
	if err != nil {
		e.t.Fatal(err)
	}
	go func() {
		defer close(c.done)
		c.err = m.Start(ctx)
	}()
	return c
}

func (e *election) begin(c *candidate) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.leader != "" {
		e.t.Errorf("%s leads, and so does %s", c.Identity(), e.leader)
	}
	token := c.Token()
	if token <= e.token {
		e.t.Errorf("%s leads with token %v after token %v", c.Identity(), token, e.token)
	}
	e.leader, e.token, e.terms = c.Identity(), token, append(e.terms, c.Identity())
}

func (e *election) end(c *candidate) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.leader == c.Identity() {
		e.leader = ""
	}
	e.ended = time.Now()
}

// state returns the present leader, the terms until now, and when the last one ended.
func (e *election) state() (leader string, terms []string, ended time.Time) {
	synctest.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.leader, slices.Clone(e.terms), e.ended
}

// leads waits until a manager of that name leads for the n-th term.
func (e *election) leads(name string, n int) {
	e.t.Helper()
	leader, terms, _ := e.state()
	for range 600 {
		if leader != "" && len(terms) >= n {
			break
		}
		time.Sleep(100 * time.Millisecond)
		leader, terms, _ = e.state()
	}
	if leader != name || len(terms) != n {
		e.t.Errorf("%q leads, after the terms %q; want %s in term %d", leader, terms, name, n)
	}
}

// close stops the managers.
func (e *election) close(all ...*candidate) {
	for _, c := range all {
		c.cut.Down.Store(false)
		c.stop()
		c.ended(e.t)
	}
	e.store.Close()
	synctest.Wait()
}

// A manager that is stopped leads until its controller has ended. Then it releases the
// lease, and the other one leads within the time between its attempts.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lasts = 20 * time.Second // longer than the lease, so that it has to be renewed
		e := newElection(t)
		a := e.run("a", clientgo.Options{}, lasts, nil)
		e.leads("a", 1)
		b := e.run("b", clientgo.Options{}, 0, nil)
		time.Sleep(time.Minute)
		if _, terms, _ := e.state(); len(terms) != 1 || b.Token() != 0 {
			t.Errorf("after a minute the terms are %q, and the second has token %v", terms, b.Token())
		}

		stopped := time.Now()
		a.stop()
		e.leads("b", 2) // fails if the controller of a still runs
		_, _, ended := e.state()
		if took := ended.Sub(stopped); took != lasts {
			t.Errorf("the controller ended after %v, want %v", took, lasts)
		}
		if pause := time.Since(ended); pause > 5*time.Second {
			t.Errorf("nobody led for %v", pause)
		}
		if err := a.ended(t); err != nil {
			t.Errorf("the first manager ends with %v", err)
		}
		e.close(a, b)
	})
}

// A manager that is cut off from the store, at any moment, ends with an error before
// another one leads.
func TestCutOff(t *testing.T) {
	for after := time.Duration(0); after < 3*time.Second; after += 300 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			e := newElection(t)
			a := e.run("a", clientgo.Options{}, 0, nil)
			e.leads("a", 1)
			b := e.run("b", clientgo.Options{}, 0, nil)
			time.Sleep(10*time.Second + after)
			a.cut.Down.Store(true)
			e.leads("b", 2) // fails if the controller of a still runs
			_, _, ended := e.state()
			if pause := time.Since(ended); pause < 500*time.Millisecond {
				t.Errorf("cut after %v: the second led %v after the first had stopped", after, pause)
			}
			if err := a.ended(t); err == nil || !strings.Contains(err.Error(), "leader election lost") {
				t.Errorf("cut after %v: the first manager ends with %v", after, err)
			}
			e.close(a, b)
		})
	}
}

// A manager whose lease an operator breaks ends with an error before another one leads.
func TestBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newElection(t)
		lost := make(chan error, 1)
		a := e.run("a", clientgo.Options{Lost: func(err error) { lost <- err }}, 0, nil)
		e.leads("a", 1)
		time.Sleep(10 * time.Second)
		operator := leasehold.New(e.store, &leasehold.Options{Clock: e.clock}).Operator()
		broken := make(chan error, 1)
		go func() {
			broken <- operator.Break(context.Background(), leasehold.BreakRequest{Name: "controller", Token: a.Token()})
		}()
		select {
		case err := <-lost:
			if !errors.Is(err, leasehold.ErrLost) {
				t.Errorf("lost with %v", err)
			}
		case <-time.After(time.Hour):
			t.Error("nobody is notified of the loss")
		}
		b := e.run("b", clientgo.Options{}, 0, nil)
		e.leads("b", 2) // fails if the controller of a still runs
		if err := a.ended(t); err == nil {
			t.Error("the first manager ends without an error")
		}
		if err := <-broken; err != nil {
			t.Error(err)
		}
		e.close(a, b)
	})
}

// A manager keeps its own durations although its lock has others, whatever its
// documentation says, so the lock refuses it.
func TestOtherDurations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newElection(t)
		o := clientgo.Options{LeaseDuration: 6 * time.Second, RenewDeadline: 3 * time.Second, RetryPeriod: time.Second}
		a := e.run("a", o, 0, func(m *manager.Options) { m.LeaseDuration, m.RenewDeadline, m.RetryPeriod = nil, nil, nil })
		time.Sleep(time.Minute)
		if _, terms, _ := e.state(); len(terms) > 0 {
			t.Errorf("terms %q with other durations", terms)
		}
		b := e.run("b", o, 0, nil)
		e.leads("b", 1)
		e.close(a, b)
	})
}

func Example() {
	st := memstore.New(nil)
	defer st.Close()
	lock, err := clientgo.New(leasehold.New(st, nil), "controller", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	durations := lock.Config()
	m, err := manager.New(&rest.Config{Host: "https://cluster.invalid"}, manager.Options{
		LeaderElection:                      true,
		LeaderElectionResourceLockInterface: lock,
		LeaderElectionReleaseOnCancel:       true,
		LeaseDuration:                       &durations.LeaseDuration,
		RenewDeadline:                       &durations.RenewDeadline,
		RetryPeriod:                         &durations.RetryPeriod,
		Metrics:                             metricsserver.Options{BindAddress: "0"},
		Logger:                              logr.FromSlogHandler(slog.DiscardHandler),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	err = m.Add(manager.RunnableFunc(func(context.Context) error {
		fmt.Println("leading with token", lock.Token())
		cancel()
		return nil
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Start(ctx))
	// Output:
	// leading with token 1
	// <nil>
}
