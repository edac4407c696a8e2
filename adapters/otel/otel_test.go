package otel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/adapters/otel"
	"github.com/leasehold-dev/leasehold/clock"
	"github.com/leasehold-dev/leasehold/internal/testenv/virtual"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// site is a store with instrumented clients.
type site struct {
	t       *testing.T
	store   *store.Store
	clock   clock.Clock
	began   time.Time
	config  *otel.Config
	spans   *tracetest.InMemoryExporter
	metrics *sdkmetric.ManualReader
	tracer  *sdktrace.TracerProvider
}

func newSite(t *testing.T) *site {
	now := virtual.Clock()
	s := &site{t: t, clock: now, began: time.Now(), store: memstore.New(&memstore.Options{Clock: now}), spans: tracetest.NewInMemoryExporter(), metrics: sdkmetric.NewManualReader()}
	t.Cleanup(func() { s.store.Close() })
	s.tracer = sdktrace.NewTracerProvider(sdktrace.WithSyncer(s.spans))
	s.config = &otel.Config{
		TracerProvider: s.tracer,
		MeterProvider:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(s.metrics)),
		Class:          func(string) string { return "jobs" },
	}
	return s
}

// client returns a client.
func (s *site) client(st *store.Store) *leasehold.Client {
	s.t.Helper()
	o := &leasehold.Options{Clock: s.clock}
	in, err := otel.Instrument(o, s.config)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { in.Close() })
	return leasehold.New(st, o)
}

// named returns the ended spans of that name.
func (s *site) named(name string) (found tracetest.SpanStubs) {
	for _, sp := range s.spans.GetSpans() {
		if sp.Name == name {
			found = append(found, sp)
		}
	}
	return found
}

func eventsOf(sp tracetest.SpanStub) (names []string) {
	for _, e := range sp.Events {
		names = append(names, e.Name)
	}
	return names
}

func attributeOf(all []attribute.KeyValue, key attribute.Key) string {
	for _, kv := range all {
		if kv.Key == key {
			return kv.Value.String()
		}
	}
	return ""
}

// The span of a call that waits lasts as long as the call, has the wait and its end as
// events, and is linked to the spans of the holders.
func TestSpanOfAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		ours, theirs := s.client(s.store), s.client(s.store)
		tracer := s.tracer.Tracer("test")
		take := func(c *leasehold.Client, name string) <-chan *leasehold.Lease {
			got := make(chan *leasehold.Lease, 1)
			go func() {
				ctx, span := tracer.Start(t.Context(), name)
				defer span.End()
				l, err := c.Mutex("a").Acquire(ctx)
				if err != nil {
					t.Error(err)
				}
				got <- l
			}()
			synctest.Wait()
			return got
		}
		release := func(l *leasehold.Lease) {
			time.Sleep(time.Second)
			if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		}
		first := <-take(ours, "first")
		second := take(ours, "second")
		third := take(theirs, "third")
		release(first)
		release(<-second)
		release(<-third)

		acquires := s.named("acquire")
		if len(acquires) != 3 {
			t.Fatalf("%d spans of calls, want 3", len(acquires))
		}
		holder := s.named("first")[0]
		for i, c := range []struct {
			name, way string
			events    []string
			links     int
			took      time.Duration
		}{
			{"first", "store", nil, 0, 0},
			{"second", "handoff", []string{"wait", "handoff"}, 1, time.Second},
			{"third", "handoff", []string{"wait", "wait", "handoff"}, 2, 2 * time.Second},
		} {
			got, caller := acquires[i], s.named(c.name)[0]
			if got.Parent.SpanID() != caller.SpanContext.SpanID() {
				t.Errorf("%s: the span of the call is no child of the caller's, want one", c.name)
			}
			if events := eventsOf(got); !slices.Equal(events, c.events) {
				t.Errorf("%s: events %v, want %v", c.name, events, c.events)
			}
			if took := got.EndTime.Sub(got.StartTime); took != c.took {
				t.Errorf("%s: the span lasts for %v, want %v", c.name, took, c.took)
			}
			if way := attributeOf(got.Attributes, "leasehold.grant.way"); way != c.way {
				t.Errorf("%s: granted by %q, want %q", c.name, way, c.way)
			}
			if c.events == nil {
				continue
			}
			if len(got.Links) != c.links || got.Links[0].SpanContext.SpanID() != holder.SpanContext.SpanID() || got.Links[0].SpanContext.TraceID() != holder.SpanContext.TraceID() {
				t.Errorf("%s: links %+v, want %d, the first to the holder's span %v", c.name, got.Links, c.links, holder.SpanContext.SpanID())
			}
		}
	})
}

// A call that gives up is an error with its type, and a link to the holder. A Try that finds
// the lock held is no error.
func TestSpanOfAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		c := s.client(s.store)
		ctx, holder := s.tracer.Tracer("test").Start(t.Context(), "holder")
		l, err := c.Mutex("a").Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Mutex("a").Try(t.Context()); !errors.Is(err, leasehold.ErrBusy) {
			t.Fatalf("a try while the lock is held: %v, want %v", err, leasehold.ErrBusy)
		}
		bounded, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Mutex("a").Acquire(bounded); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("a wait of a second while the lock is held: %v, want %v", err, context.DeadlineExceeded)
		}
		for i, want := range []codes.Code{codes.Unset, codes.Error} {
			got := s.named("acquire")[1+i]
			if got.Status.Code != want || attributeOf(got.Attributes, "error.type") != "busy" {
				t.Errorf("call %d: status %v, attributes %v, want the code %v and the type busy", i, got.Status, got.Attributes, want)
			}
			if len(got.Links) != 1 || got.Links[0].SpanContext.SpanID() != holder.SpanContext().SpanID() {
				t.Errorf("call %d: links %+v, want one to the holder's span", i, got.Links)
			}
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// The span of a call ends also if an Observer that was set before panics, at any event.
func TestEarlierObserverPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		var at leasehold.EventKind
		o := &leasehold.Options{Clock: s.clock, Observer: func(_ context.Context, e leasehold.Event) {
			if e.Kind == at {
				panic("the earlier Observer panics")
			}
		}}
		in, err := otel.Instrument(o, s.config)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		held, err := leasehold.New(s.store, &leasehold.Options{Clock: s.clock}).Mutex("a").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c := leasehold.New(s.store, o)
		for _, kind := range []leasehold.EventKind{leasehold.Waiting, leasehold.Failed, leasehold.Acquired, leasehold.Released} {
			at = kind
			func() {
				defer func() { recover() }()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				name := "free"
				if kind == leasehold.Waiting || kind == leasehold.Failed {
					name = "a"
				}
				l, err := c.Mutex(name).Acquire(ctx)
				if err == nil {
					l.Release(ctx)
				}
			}()
			synctest.Wait()
		}
		if err := held.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if got := len(s.named("acquire")); got != 4 {
			t.Errorf("%d spans of calls have ended, want 4", got)
		}
	})
}

// Names of locks may have any bytes. What is exported of them is UTF-8.
func TestStrangeNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.config.Class = func(name string) string { return name[:2] }
		l, err := s.client(s.store).Mutex("a\xff7").Try(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
		got := s.named("acquire")[0].Attributes
		if name, class := attributeOf(got, "leasehold.lock.name"), attributeOf(got, "leasehold.lock.class"); name != "a\uFFFD7" || class != "a\uFFFD" {
			t.Errorf("the span has the name %q and the class %q, want %q and %q", name, class, "a\uFFFD7", "a\uFFFD")
		}
		s.wants(map[string]float64{"leasehold.lease.count{a\uFFFD}": 0})
	})
}

// forgetful is a store whose renewals fail.
type forgetful struct {
	store.Engine
	err error
}

func (f *forgetful) Renew(_ context.Context, leases []store.Lease) []error {
	return slices.Repeat([]error{f.err}, len(leases))
}

// Renewals that fail, and the loss that follows, are events of the span in which the lock
// was acquired. They are counted.
func TestLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		c := s.client(store.New(&forgetful{s.store, errors.New("no route to the store")}))
		ctx, holder := s.tracer.Tracer("test").Start(t.Context(), "holder")
		l, err := c.Mutex("a").Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		<-l.Done()
		synctest.Wait()
		l.Release(t.Context())
		holder.End()
		events := s.named("holder")[0].Events
		last := events[len(events)-1]
		if events[0].Name != "leasehold.renewal.failed" || last.Name != "leasehold.lease.lost" || attributeOf(last.Attributes, "leasehold.loss.cause") != "expired" {
			t.Errorf("events %+v, want failed renewals first, and the loss, which expired, last", events)
		}
		s.wants(map[string]float64{
			"leasehold.losses{expired,jobs}":        1,
			"leasehold.lease.count{jobs}":           0,
			"leasehold.renewal.failures{jobs}":      float64(len(events) - 1),
			"leasehold.hold.duration{expired,jobs}": last.Time.Sub(s.began).Seconds(),
		})
	})
}

// collect returns the values of all metrics, by name and the values of attributes: sums,
// also those of histograms.
func (s *site) collect() map[string]float64 {
	s.t.Helper()
	var data metricdata.ResourceMetrics
	if err := s.metrics.Collect(s.t.Context(), &data); err != nil {
		s.t.Fatal(err)
	}
	all := map[string]float64{}
	add := func(name string, set attribute.Set, v float64) {
		var values []string
		for _, kv := range set.ToSlice() {
			values = append(values, kv.Value.String())
		}
		slices.Sort(values)
		key := name + "{"
		for i, v := range values {
			if i > 0 {
				key += ","
			}
			key += v
		}
		all[key+"}"] = v
	}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch d := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					add(m.Name, p.Attributes, float64(p.Value))
				}
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					add(m.Name, p.Attributes, p.Sum)
				}
			default:
				s.t.Errorf("%s has data of type %T, want a sum or a histogram", m.Name, d)
			}
		}
	}
	return all
}

func (s *site) wants(want map[string]float64) {
	s.t.Helper()
	got := s.collect()
	for key, v := range want {
		if g, there := got[key]; !there || g < v-.001 || g > v+.001 {
			s.t.Errorf("%s is %v (exists: %v), want %v; all: %v", key, g, there, v, got)
		}
	}
}

// A hold, a wait and a hand-off are measured.
func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.config.Stats = func() redisstore.Stats {
			return redisstore.Stats{Nodes: []redisstore.NodeStats{{Node: "a"}, {Node: "b", Err: errors.New("refused")}, {Node: "c", QuarantinedFor: time.Second}, {Node: "d"}}}
		}
		c := s.client(s.store)
		lock := c.Mutex("a")
		first, err := lock.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		second := make(chan *leasehold.Lease)
		go func() {
			l, err := lock.Acquire(t.Context())
			if err != nil {
				t.Error(err)
			}
			second <- l
		}()
		synctest.Wait()
		s.wants(map[string]float64{"leasehold.waiter.count{jobs}": 1, "leasehold.lease.count{jobs}": 1})
		time.Sleep(3 * time.Second)
		if err := first.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if err := (<-second).Release(t.Context()); err != nil {
			t.Error(err)
		}
		lock.With(leasehold.LockOptions{TTL: -1}).Try(t.Context())
		s.wants(map[string]float64{
			"leasehold.waiter.count{jobs}":             0,
			"leasehold.lease.count{jobs}":              0,
			"leasehold.grants{jobs,store}":             1,
			"leasehold.grants{handoff,jobs}":           1,
			"leasehold.wait.duration{jobs}":            3,
			"leasehold.acquire.duration{jobs}":         3,
			"leasehold.acquire.duration{invalid,jobs}": 0,
			"leasehold.hold.duration{jobs}":            3,
			"leasehold.node.count{up}":                 2,
			"leasehold.node.count{down}":               1,
			"leasehold.node.count{quarantined}":        1,
		})
	})
}

func ExampleInstrument() {
	st := memstore.New(nil)
	defer st.Close()

	spans := tracetest.NewInMemoryExporter()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	o := &leasehold.Options{}
	in, err := otel.Instrument(o, &otel.Config{TracerProvider: tracers})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer in.Close()
	client := leasehold.New(st, o)

	ctx, span := tracers.Tracer("reports").Start(context.Background(), "make the report")
	client.Mutex("report").Do(ctx, func(ctx context.Context, l *leasehold.Lease) error {
		state, err := st.Inspect(ctx, "report")
		fmt.Println("the holder's trace is ours:", state.Holder.TraceID() == span.SpanContext().TraceID().String())
		return err
	})
	span.End()
	for _, s := range spans.GetSpans() {
		fmt.Println(s.Name)
	}
	// Output:
	// the holder's trace is ours: true
	// acquire
	// make the report
}
