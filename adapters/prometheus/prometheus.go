// Package prometheus measures locks for Prometheus. A Collector counts the events of
// clients, and reports the nodes of stores:
//
//	c := prometheus.New(nil)
//	registry.MustRegister(c)
//	client := leasehold.New(st, &leasehold.Options{Observer: c.Observe})
//
// The metrics are
//
//	leasehold_acquire_duration_seconds  histogram of calls of Acquire, Try and Do until
//	                                    they have the lock or give up, by result:
//	                                    "granted" or "failed"
//	leasehold_wait_duration_seconds     histogram of waits, for calls that had to wait
//	leasehold_hold_duration_seconds     histogram of holds, by end: "released" or "lost"
//	leasehold_leases                    leases held now
//	leasehold_waiters                   calls that wait now
//	leasehold_grants_total              leases obtained, by way: asked of the "store",
//	                                    or "handoff" by another holder
//	leasehold_acquire_failures_total    calls that gave up, by reason: "busy",
//	                                    "canceled", "timeout", "quorum", "late_grant",
//	                                    "invalid", "unsupported", "kind_mismatch",
//	                                    "closed", or "store" for other errors of a store
//	leasehold_renewal_failures_total    renewals that failed while the lease was valid
//	leasehold_losses_total              leases lost, by cause: "expired", "denied" or
//	                                    "max_hold"
//	leasehold_node_state                1 for the state that a node of Redis is in, and
//	                                    0 for the others, by node and state: "up",
//	                                    "down" or "quarantined"
//	leasehold_node_dropped_releases_total
//	                                    releases that a node never executed, by node
//
// The name of a lock is not a label, since programs make names out of what they work on.
// Options.Class gives each lock a class, which is a label then.
//
// Folder adapters/prometheus of the repository has a dashboard for Grafana, dashboard.json, and
// alert rules, alerts.yml.
package prometheus

import (
	"context"
	"strings"

	prom "github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/adapters/internal/tally"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// Options configure a Collector. The zero value and nil mean the defaults.
type Options struct {
	// Class returns the class of a lock, which becomes the label "class". There should be
	// few: each has about a hundred time series. Names may have any bytes; what is not
	// UTF-8 in a class is replaced. It must be safe for concurrent use and must not block.
	// Nil: no such label.
	Class func(name string) string
	// Buckets are the upper bounds of the histograms' buckets, in seconds. Nil:
	// DefaultBuckets.
	Buckets []float64
	// Stats returns the state of the nodes of a store, as redisstore.StatsOf
	// does. It is called for each scrape. For several stores, register a
	// Collector for each with prom.WrapRegistererWith and a label that tells them apart: a
	// registry refuses two with the same metrics. Nil: no metrics of nodes.
	Stats func() redisstore.Stats
}

// DefaultBuckets returns the default of Options.Buckets: from a millisecond to an hour.
func DefaultBuckets() []float64 {
	return []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600}
}

// Collector has the metrics of any number of clients. It is safe for concurrent use.
type Collector struct {
	class   func(name string) string
	stats   func() redisstore.Stats
	tally   tally.Tally
	metrics metrics
}

var _ prom.Collector = (*Collector)(nil)

// New returns a Collector, to be registered with a prom.Registerer. A nil o means the
// defaults. It panics if the buckets are not in increasing order.
func New(o *Options) *Collector {
	if o == nil {
		o = &Options{}
	}
	c := &Collector{class: o.Class, stats: o.Stats}
	buckets := o.Buckets
	if buckets == nil {
		buckets = DefaultBuckets()
	}
	var labels []string
	if c.class != nil {
		labels = []string{"class"}
	}
	c.metrics.init(labels, buckets)
	if c.class == nil {
		c.metrics.of(nil) // so that counters are 0 before their first event
	}
	return c
}

// Observe counts an event. It is for Options.Observer of one or several clients, and does
// not block.
func (c *Collector) Observe(_ context.Context, e leasehold.Event) {
	s := c.metrics.of(c.labels(e.Name))
	change := c.tally.Step(e)
	s.waiters.Add(float64(change.Waiters))
	s.leases.Add(float64(change.Leases))
	if change.Ended {
		s.wait.Observe(change.Waited.Seconds())
	}
	switch e.Kind {
	case leasehold.Acquired, leasehold.Handed:
		s.acquire["granted"].Observe(e.Waited.Seconds())
		s.grants[tally.Way(e.Kind)].Inc()
	case leasehold.Failed:
		s.acquire["failed"].Observe(e.Waited.Seconds())
		s.failures[tally.Reason(e.Err)].Inc()
	case leasehold.RenewalFailed:
		s.renewals.Inc()
	}
	switch {
	case !change.Over:
	case change.Loss != "":
		s.hold["lost"].Observe(e.Held.Seconds())
		s.losses[change.Loss].Inc()
	default:
		s.hold["released"].Observe(e.Held.Seconds())
	}
}

// labels returns the values of the labels that all metrics of a lock have.
func (c *Collector) labels(name string) []string {
	if c.class == nil {
		return nil
	}
	return []string{strings.ToValidUTF8(c.class(name), "\uFFFD")} // client_golang panics otherwise
}

// Describe implements prom.Collector.
func (c *Collector) Describe(ch chan<- *prom.Desc) {
	for _, v := range c.metrics.vectors() {
		v.Describe(ch)
	}
	if c.stats != nil {
		ch <- nodeState
		ch <- nodeDropped
	}
}

// Collect implements prom.Collector.
func (c *Collector) Collect(ch chan<- prom.Metric) {
	for _, v := range c.metrics.vectors() {
		v.Collect(ch)
	}
	if c.stats != nil {
		collectNodes(ch, c.stats())
	}
}
