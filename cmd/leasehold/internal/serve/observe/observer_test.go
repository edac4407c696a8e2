package observe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/virtual"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

// watched is a store that counts what it is asked, and can fail.
type watched struct {
	store.Engine
	mu              sync.Mutex
	lists, inspects int
	err             error
	hangs           bool
}

func newWatched() *watched {
	return &watched{Engine: memstore.New(&memstore.Options{Clock: virtual.Clock()})}
}

func (w *watched) List(ctx context.Context, prefix string) ([]store.State, error) {
	w.mu.Lock()
	w.lists++
	err, hangs := w.err, w.hangs
	w.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	return w.Engine.List(ctx, prefix)
}

func (w *watched) Inspect(ctx context.Context, name string) (store.State, error) {
	w.mu.Lock()
	w.inspects++
	w.mu.Unlock()
	return w.Engine.Inspect(ctx, name)
}

func (w *watched) asked() (lists, inspects int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	lists, inspects = w.lists, w.inspects
	w.lists, w.inspects = 0, 0
	return lists, inspects
}

func (w *watched) fail(err error, hangs bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err, w.hangs = err, hangs
}

func leaseOf(name, owner string, ttl time.Duration) store.Lease {
	return store.Lease{Name: name, Owner: owner, TTL: ttl, Meta: store.Holder{Host: "h", PID: 1, Since: time.Now()}.Encode()}
}

func (w *watched) acquire(t *testing.T, l store.Lease) store.Lease {
	t.Helper()
	if _, err := w.Acquire(t.Context(), store.AcquireRequest{Lease: l}); err != nil {
		t.Fatal(err)
	}
	return l
}

func (w *watched) release(t *testing.T, l store.Lease) {
	t.Helper()
	if err := w.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
		t.Fatal(err)
	}
}

// told returns the events of v, such as "acquired a/x".
func told(v *View) string {
	var s []string
	for _, e := range v.Events {
		s = append(s, fmt.Sprintf("%s %s", e.Kind, e.Name))
	}
	return strings.Join(s, ", ")
}

// A view shows what is held and who waits, and the events between two looks.
func TestView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newWatched()
		o := New(store.New(st))
		defer o.Close()
		a := st.acquire(t, leaseOf("team/a", "x", time.Minute))
		ctx, cancel := context.WithCancel(t.Context())
		waiting := make(chan error)
		go func() {
			_, err := st.Wait(ctx, store.WaitRequest{Lease: leaseOf("team/a", "y", time.Minute)}, func(error) {})
			waiting <- err
		}()
		synctest.Wait()
		v := o.View(t.Context())
		if v.Err != nil || len(v.Locks) != 1 || len(v.Locks[0].Queue) != 1 || v.Locks[0].Leases[0].TTL != time.Minute {
			t.Fatalf("got %+v", v)
		}
		time.Sleep(10 * time.Second)
		if n, longest := Waiting(v.Locks, time.Now()); n != 1 || longest < 9*time.Second || longest > 11*time.Second {
			t.Errorf("%d waiters, the first for %v", n, longest)
		}
		st.release(t, a)
		if err := <-waiting; err != nil {
			t.Fatal(err)
		}
		st.acquire(t, leaseOf("other", "z", 20*time.Second))
		v = o.View(t.Context())
		if got, want := told(v), "acquired other, handed-over team/a"; got != want {
			t.Errorf("events %s, want %s", got, want)
		}
		if len(v.Under("team/")) != 1 || len(v.Under("")) != 2 || len(v.Under("zzz")) != 0 || v.Lock("other") == nil || v.Lock("othe") != nil {
			t.Errorf("locks %+v", v.Locks)
		}
		cancel()
		time.Sleep(time.Minute) // both run out; calls of View are rare, but the looks go on
		v = o.View(t.Context())
		if v.Counts.LostExpired != 2 || len(v.Locks) != 0 {
			t.Errorf("counts %+v, locks %+v", v.Counts, v.Locks)
		}
	})
}

// However many watch, the store is asked once a second. When nobody does any more, it is asked
// less often, and then no longer.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newWatched()
		for i := range 1000 {
			st.acquire(t, leaseOf(fmt.Sprintf("lock-%04d", i), "x", time.Hour))
		}
		o := New(store.New(st))
		defer o.Close()
		time.Sleep(time.Hour)
		if lists, _ := st.asked(); lists != 0 {
			t.Errorf("%d looks without anybody to look", lists)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 200 {
			all.Go(func() {
				for id := uint64(0); ; {
					v, err := o.Next(ctx, id)
					if err != nil {
						return
					}
					id = v.ID
				}
			})
		}
		time.Sleep(time.Minute)
		lists, inspects := st.asked()
		if lists < 55 || lists > 62 {
			t.Errorf("%d looks in a minute", lists)
		}
		if most := lists * inspections; inspects > most {
			t.Errorf("%d inspections in a minute, want %d at most", inspects, most)
		}
		cancel()
		all.Wait()
		time.Sleep(linger)
		if lists, _ := st.asked(); lists > int(linger/calm)+2 {
			t.Errorf("%d looks in %v after the last watcher", lists, linger)
		}
		time.Sleep(linger)
		st.asked()
		time.Sleep(time.Hour)
		if lists, _ := st.asked(); lists != 0 {
			t.Errorf("%d looks in the hour after", lists)
		}
		if v := o.View(t.Context()); time.Since(v.At) > time.Second || v.Err != nil {
			t.Errorf("a view of %v, %v", v.At, v.Err)
		}
	})
}

// All locks are inspected in turn, those that somebody looks at first.
func TestInspections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newWatched()
		for i := range 1000 {
			st.acquire(t, leaseOf(fmt.Sprintf("lock-%04d", i), "x", time.Hour))
		}
		o := New(store.New(st))
		defer o.Close()
		o.Want("lock-0777", "not there")
		v := o.View(t.Context())
		if v.Lock("lock-0777").InspectedAt.IsZero() {
			t.Error("a lock that is wanted was not inspected")
		}
		for range 10 {
			v, _ = o.Next(t.Context(), v.ID)
		}
		for _, l := range v.Locks {
			if l.InspectedAt.IsZero() {
				t.Fatalf("%s was not inspected", l.Name)
			}
		}
	})
}

// While the store fails or hangs, a view says so in time and shows what was seen last. Nothing
// is taken for a change.
func TestStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newWatched()
		st.acquire(t, leaseOf("a", "x", time.Hour))
		o := New(store.New(st))
		defer o.Close()
		seen := o.View(t.Context()).At
		trouble := errors.New("no route to host")
		st.fail(trouble, false)
		time.Sleep(3 * time.Second)
		v := o.View(t.Context())
		if !errors.Is(v.Err, trouble) || len(v.Locks) != 1 || !v.SeenAt.Equal(seen) {
			t.Errorf("got %+v", v)
		}
		st.fail(nil, true)
		time.Sleep(lookTimeout + calm)
		began := time.Now()
		v = o.View(t.Context())
		if d := time.Since(began); d > patience {
			t.Errorf("View blocked for %v", d)
		}
		if v.Err == nil || len(v.Locks) != 1 || len(v.Events) != 0 {
			t.Errorf("got %+v", v)
		}
		var b bytes.Buffer
		v.WriteMetrics(&b, time.Now())
		if !strings.Contains(b.String(), "leasehold_store_up 0\n") {
			t.Errorf("metrics: %s", b.String())
		}
		few := &store.QuorumError{Op: "list", Need: 2, Nodes: []store.NodeOutcome{{Node: "a", Outcome: store.Quarantined}, {Node: "b", Outcome: store.TimedOut}, {Node: "c", Outcome: store.Granted}}}
		st.fail(few, false)
		time.Sleep(lookTimeout + calm)
		if v = o.View(t.Context()); len(v.Nodes) != 3 {
			t.Errorf("nodes %+v, want those that did not answer", v.Nodes)
		}
		st.fail(nil, false)
		time.Sleep(lookTimeout + calm)
		if v = o.View(t.Context()); v.Err != nil || len(v.Events) != 0 {
			t.Errorf("got %+v", v)
		}
	})
}

// several is a store of three nodes.
type several struct{ *watched }

func (s several) Caps() store.Caps {
	c := s.Engine.Caps()
	c.Nodes, c.Quorum = 3, 2
	return c
}

func (s several) Inspect(ctx context.Context, name string) (store.State, error) {
	return store.State{Name: name, Nodes: []store.NodeOutcome{{Node: "a"}, {Node: "b", Outcome: store.Quarantined}, {Node: "c", Outcome: store.Absent}}}, nil
}

// What the nodes of a store answer is known also while no lock is held.
func TestNodesWithoutLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := New(store.New(several{newWatched()}))
		defer o.Close()
		if v := o.View(t.Context()); len(v.Nodes) != 3 || Well(v.Nodes[1]) || !Well(v.Nodes[2]) {
			t.Errorf("nodes %+v", v.Nodes)
		}
	})
}

// A broken lease is told at once, with who broke it and why, and its end later.
func TestBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newWatched()
		g, err := st.Acquire(t.Context(), store.AcquireRequest{Lease: leaseOf("a", "x", 30*time.Second)})
		if err != nil {
			t.Fatal(err)
		}
		o := New(store.New(st))
		defer o.Close()
		v, _ := o.Next(t.Context(), 0)
		began := time.Now()
		if _, err := st.BreakLease(t.Context(), store.BreakRequest{Name: "a", Owner: "x", Token: g.Token, By: "op", Reason: "hangs"}); err != nil {
			t.Fatal(err)
		}
		v, _ = o.Next(t.Context(), v.ID)
		if time.Since(began) >= every {
			t.Errorf("told after %v", time.Since(began))
		}
		if told(v) != "broken a" || v.Events[0].Broken == nil || v.Events[0].Broken.Reason != "hangs" || v.Counts.Broken != 1 {
			t.Errorf("events %+v", v.Events)
		}
		for v.Counts.LostBroken == 0 {
			v, _ = o.Next(t.Context(), v.ID)
		}
		if told(v) != "broken a, lost a" || time.Since(began) > 31*time.Second+calm { // a look is late if nobody asks at that moment
			t.Errorf("events %s after %v", told(v), time.Since(began))
		}
	})
}

// However many ask for a lock, the store is asked once a second, and for a bounded number of locks.
func TestInspect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newWatched()
		o := New(store.New(st))
		defer o.Close()
		for range 100 {
			if s, err := o.Inspect(t.Context(), "a"); err != nil || s.Name != "a" {
				t.Fatalf("%+v, %v", s, err)
			}
		}
		if _, inspects := st.asked(); inspects != 1 {
			t.Errorf("%d inspections for 100 calls", inspects)
		}
		refused := 0
		for i := range 1000 {
			if _, err := o.Inspect(t.Context(), fmt.Sprint(i)); err != nil {
				refused++
			}
		}
		if _, inspects := st.asked(); inspects > mostSingle || refused != 1000-inspects {
			t.Errorf("%d inspections for 1000 names, %d refused", inspects, refused)
		}
		time.Sleep(every)
		if _, err := o.Inspect(t.Context(), "a"); err != nil {
			t.Errorf("a second later: %v", err)
		}
	})
}

// The recent events are bounded.
func TestEventsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newWatched()
		o := New(store.New(st))
		defer o.Close()
		v := o.View(t.Context())
		for i := range 4 {
			for j := range 300 {
				st.acquire(t, leaseOf(fmt.Sprintf("lock-%d-%d", i, j), "x", time.Hour))
			}
			v, _ = o.Next(t.Context(), v.ID)
		}
		if len(v.Events) != kept || v.Counts.Acquired != 1200 || v.Events[kept-1].ID != 1200 {
			t.Errorf("%d events, counts %+v", len(v.Events), v.Counts)
		}
	})
}

// A call of Next ends with its context, and when the Observer is closed.
func TestNextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := New(store.New(newWatched()))
		v := o.View(t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := o.Next(ctx, v.ID+100); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		ended := make(chan error)
		go func() {
			_, err := o.Next(t.Context(), v.ID+100)
			ended <- err
		}()
		synctest.Wait()
		o.Close()
		if err := <-ended; !errors.Is(err, store.ErrClosed) {
			t.Errorf("got %v", err)
		}
		if _, err := o.Next(t.Context(), v.ID+100); !errors.Is(err, store.ErrClosed) {
			t.Errorf("after Close: got %v", err)
		}
	})
}

// The metrics are those of the store, and hostile names of nodes stay within their label.
func TestMetrics(t *testing.T) {
	now := time.Now()
	v := &View{ID: 7, SeenAt: now.Add(-time.Second), Counts: Counts{Acquired: 3, LostExpired: 2, LostBroken: 1, Broken: 1}}
	v.Nodes = []store.NodeOutcome{{Node: "a\"\n\\", Outcome: store.TimedOut}}
	v.Locks = []Lock{{State: store.State{Name: "a", Held: true, Queue: []store.Place{{Holder: store.Holder{Since: now.Add(-time.Minute)}}}}, InspectedAt: now, Leases: make([]Lease, 2)}}
	var b bytes.Buffer
	if err := v.WriteMetrics(&b, now); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"leasehold_store_up 1\n", "leasehold_store_locks_held 1\n", "leasehold_store_leases 2\n", "leasehold_store_waiters 1\n",
		"leasehold_store_oldest_wait_seconds 60\n", `leasehold_store_losses_total{cause="expired"} 2`, `leasehold_store_losses_total{cause="broken"} 1`,
		"leasehold_store_breaks_total 1\n", `leasehold_store_node_answers{node="a\"\n\\",outcome="timed out"} 0`,
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
}
