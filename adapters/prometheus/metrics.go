package prometheus

import (
	"slices"
	"strings"
	"sync"

	prom "github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold-dev/leasehold/adapters/internal/tally"
)

// metrics are the metrics of locks, for all classes.
type metrics struct {
	acquire, wait, hold                *prom.HistogramVec
	leases, waiters                    *prom.GaugeVec
	grants, failures, renewals, losses *prom.CounterVec

	classes sync.Map // of *series, by class
}

// series are the time series of one class. All of them exist from the beginning, so that
// the first event of a kind is an increase.
type series struct {
	acquire, hold            map[string]prom.Observer
	wait                     prom.Observer
	leases, waiters          prom.Gauge
	grants, failures, losses map[string]prom.Counter
	renewals                 prom.Counter
}

func (m *metrics) init(labels []string, buckets []float64) {
	histogram := func(name, help string, more ...string) *prom.HistogramVec {
		return prom.NewHistogramVec(prom.HistogramOpts{Namespace: "leasehold", Name: name, Help: help, Buckets: buckets}, slices.Concat(labels, more))
	}
	gauge := func(name, help string) *prom.GaugeVec {
		return prom.NewGaugeVec(prom.GaugeOpts{Namespace: "leasehold", Name: name, Help: help}, labels)
	}
	counter := func(name, help string, more ...string) *prom.CounterVec {
		return prom.NewCounterVec(prom.CounterOpts{Namespace: "leasehold", Name: name, Help: help}, slices.Concat(labels, more))
	}
	m.acquire = histogram("acquire_duration_seconds", "Time until a call had its lock or gave up.", "result")
	m.wait = histogram("wait_duration_seconds", "Time that calls waited for a lock, for those that had to wait.")
	m.hold = histogram("hold_duration_seconds", "Time that leases were held.", "end")
	m.leases = gauge("leases", "Leases held now.")
	m.waiters = gauge("waiters", "Calls that wait for a lock now.")
	m.grants = counter("grants_total", "Leases obtained, by the way in which they were.", "way")
	m.failures = counter("acquire_failures_total", "Calls that obtained no lease, by reason.", "reason")
	m.renewals = counter("renewal_failures_total", "Renewals that failed while the lease was valid.")
	m.losses = counter("losses_total", "Leases lost before they were released, by cause.", "cause")
}

func (m *metrics) vectors() []prom.Collector {
	return []prom.Collector{m.acquire, m.wait, m.hold, m.leases, m.waiters, m.grants, m.failures, m.renewals, m.losses}
}

// of returns the time series with those labels.
func (m *metrics) of(labels []string) *series {
	class := strings.Join(labels, "") // there is one at most
	if s, known := m.classes.Load(class); known {
		return s.(*series)
	}
	s := &series{
		acquire:  each(labels, []string{"granted", "failed"}, m.acquire.WithLabelValues),
		wait:     m.wait.WithLabelValues(labels...),
		hold:     each(labels, []string{"released", "lost"}, m.hold.WithLabelValues),
		leases:   m.leases.WithLabelValues(labels...),
		waiters:  m.waiters.WithLabelValues(labels...),
		grants:   each(labels, tally.Ways(), m.grants.WithLabelValues),
		failures: each(labels, tally.Reasons(), m.failures.WithLabelValues),
		renewals: m.renewals.WithLabelValues(labels...),
		losses:   each(labels, tally.Causes(), m.losses.WithLabelValues),
	}
	m.classes.Store(class, s) // another goroutine may have stored the same
	return s
}

// each returns the time series with those labels and one of values, by value.
func each[M any](labels, values []string, with func(...string) M) map[string]M {
	all := map[string]M{}
	for _, v := range values {
		all[v] = with(slices.Concat(labels, []string{v})...)
	}
	return all
}
