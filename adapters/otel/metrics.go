package otel

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/adapters/internal/tally"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

type metrics struct {
	classes classes
	tally   tally.Tally

	acquire, wait, hold      metric.Float64Histogram
	leases, waiters          metric.Int64UpDownCounter
	grants, renewals, losses metric.Int64Counter

	nodes metric.Registration // nil: none
}

// bounds are the upper bounds of the buckets that the histograms advise, in seconds.
var bounds = metric.WithExplicitBucketBoundaries(.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600)

func newMetrics(meter metric.Meter, c classes, stats func() redisstore.Stats) (*metrics, error) {
	m := &metrics{classes: c}
	var errs []error
	histogram := func(name, description string) metric.Float64Histogram {
		h, err := meter.Float64Histogram(name, metric.WithDescription(description), metric.WithUnit("s"), bounds)
		errs = append(errs, err)
		return h
	}
	upDown := func(name, unit, description string) metric.Int64UpDownCounter {
		u, err := meter.Int64UpDownCounter(name, metric.WithDescription(description), metric.WithUnit(unit))
		errs = append(errs, err)
		return u
	}
	counter := func(name, unit, description string) metric.Int64Counter {
		n, err := meter.Int64Counter(name, metric.WithDescription(description), metric.WithUnit(unit))
		errs = append(errs, err)
		return n
	}
	m.acquire = histogram("leasehold.acquire.duration", "Time until a call had its lock or gave up.")
	m.wait = histogram("leasehold.wait.duration", "Time that calls waited for a lock, for those that had to wait.")
	m.hold = histogram("leasehold.hold.duration", "Time that leases were held.")
	m.leases = upDown("leasehold.lease.count", "{lease}", "Leases held now.")
	m.waiters = upDown("leasehold.waiter.count", "{waiter}", "Calls that wait for a lock now.")
	m.grants = counter("leasehold.grants", "{grant}", "Leases obtained, by the way in which they were.")
	m.renewals = counter("leasehold.renewal.failures", "{failure}", "Renewals that failed while the lease was valid.")
	m.losses = counter("leasehold.losses", "{loss}", "Leases lost before they were released, by cause.")
	if stats != nil {
		errs = append(errs, m.reportNodes(meter, stats))
	}
	return m, errors.Join(errs...)
}

// reportNodes has the states of nodes reported with each collection.
func (m *metrics) reportNodes(meter metric.Meter, stats func() redisstore.Stats) error {
	nodes, err := meter.Int64ObservableUpDownCounter("leasehold.node.count", metric.WithDescription("Nodes, by the state that this client sees them in."), metric.WithUnit("{node}"))
	if err != nil {
		return err
	}
	m.nodes, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		count := map[string]int64{}
		for _, n := range stats().Nodes {
			count[tally.NodeState(n)]++
		}
		for _, state := range tally.NodeStates() {
			o.ObserveInt64(nodes, count[state], metric.WithAttributes(attribute.String("leasehold.node.state", state)))
		}
		return nil
	}, nodes)
	return err
}

func (m *metrics) observe(ctx context.Context, e leasehold.Event) {
	class := m.classes.of(e.Name)
	with := func(more ...attribute.KeyValue) metric.MeasurementOption {
		return metric.WithAttributes(append(class[:len(class):len(class)], more...)...)
	}
	change := m.tally.Step(e)
	if change.Waiters != 0 {
		m.waiters.Add(ctx, int64(change.Waiters), with())
	}
	if change.Leases != 0 {
		m.leases.Add(ctx, int64(change.Leases), with())
	}
	if change.Ended {
		m.wait.Record(ctx, change.Waited.Seconds(), with())
	}
	switch e.Kind {
	case leasehold.Acquired, leasehold.Handed:
		m.acquire.Record(ctx, e.Waited.Seconds(), with())
		m.grants.Add(ctx, 1, with(way(e)))
	case leasehold.Failed:
		m.acquire.Record(ctx, e.Waited.Seconds(), with(errorType(e)))
	case leasehold.RenewalFailed:
		m.renewals.Add(ctx, 1, with())
	}
	switch {
	case !change.Over:
	case change.Loss != "":
		m.hold.Record(ctx, e.Held.Seconds(), with(cause(change.Loss)))
		m.losses.Add(ctx, 1, with(cause(change.Loss)))
	default:
		m.hold.Record(ctx, e.Held.Seconds(), with())
	}
}

func way(e leasehold.Event) attribute.KeyValue {
	return attribute.String("leasehold.grant.way", tally.Way(e.Kind))
}

func errorType(e leasehold.Event) attribute.KeyValue {
	return attribute.String("error.type", tally.Reason(e.Err))
}

func cause(loss string) attribute.KeyValue {
	return attribute.String("leasehold.loss.cause", loss)
}

func (m *metrics) close() error {
	if m.nodes == nil {
		return nil
	}
	return m.nodes.Unregister()
}
