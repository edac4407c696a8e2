package otel

import (
	"context"
	"runtime/debug"
	"strings"

	api "go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// scope names what makes the spans and metrics.
const scope = "github.com/leasehold-dev/leasehold/adapters/otel"

// Config configures the instrumentation. The zero value and nil mean the defaults.
type Config struct {
	// MeterProvider and TracerProvider receive the metrics and spans. Nil: the global
	// ones.
	MeterProvider  metric.MeterProvider
	TracerProvider trace.TracerProvider
	// Class returns the class of a lock, which becomes an attribute. There should be few.
	// Names may have any bytes; what is not UTF-8 in an attribute is replaced.
	// It must be safe for concurrent use and must not block. Nil: no such attribute.
	Class func(name string) string
	// Stats returns the state of the nodes of a store, as Store.Stats of package
	// redisstore does. It is called for each collection. Set it in one call of Instrument
	// for each store, since the nodes are counted once for each call. Nil: no metrics of
	// nodes.
	Stats func() redisstore.Stats
}

// Instrumentation measures and traces the clients that were made with the options given
// to Instrument. It is safe for concurrent use.
type Instrumentation struct {
	metrics *metrics
	spans   *spans
}

// Instrument sets o.Observer and o.Trace, for clients that are made with o afterwards. An
// Observer that was set before is called first, also that of an earlier call, so call it
// once for the same options; a Trace that was set before stays. A nil c means the
// defaults. The error is that of the MeterProvider, and o is as before then.
func Instrument(o *leasehold.Options, c *Config) (*Instrumentation, error) {
	if c == nil {
		c = &Config{}
	}
	meters, tracers := c.MeterProvider, c.TracerProvider
	if meters == nil {
		meters = api.GetMeterProvider()
	}
	if tracers == nil {
		tracers = api.GetTracerProvider()
	}
	info, _ := debug.ReadBuildInfo()
	version := versionIn(info)
	m, err := newMetrics(meters.Meter(scope, metric.WithInstrumentationVersion(version)), classes(c.Class), c.Stats)
	if err != nil {
		return nil, err
	}
	in := &Instrumentation{m, newSpans(tracers.Tracer(scope, trace.WithInstrumentationVersion(version)), classes(c.Class))}
	before := o.Observer
	o.Observer = func(ctx context.Context, e leasehold.Event) {
		defer in.observe(ctx, e) // also if before panics: a span that has begun has to end
		if before != nil {
			before(ctx, e)
		}
	}
	if o.Trace == nil {
		o.Trace = traceparent
	}
	return in, nil
}

func (in *Instrumentation) observe(ctx context.Context, e leasehold.Event) {
	in.metrics.observe(ctx, e)
	in.spans.observe(ctx, e)
}

// Close ends the reports about nodes. Clients can go on. A second call does nothing.
func (in *Instrumentation) Close() error { return in.metrics.close() }

// classes returns the attributes of a lock's class: one, or none.
type classes func(name string) string

func (c classes) of(name string) []attribute.KeyValue {
	if c == nil {
		return nil
	}
	return []attribute.KeyValue{text("leasehold.lock.class", c(name))}
}

// text returns an attribute with text that users or servers choose. Exporters of OTLP drop
// all that they send together if one string is not UTF-8.
func text(key, s string) attribute.KeyValue {
	return attribute.String(key, strings.ToValidUTF8(s, "\uFFFD"))
}

// versionIn returns the version of this module in a program, or "" if it has none: the
// program was built in a clone, or without modules.
func versionIn(program *debug.BuildInfo) string {
	if program == nil {
		return ""
	}
	for _, m := range program.Deps {
		if m.Path == scope && m.Replace == nil && m.Version != "(devel)" {
			return m.Version
		}
	}
	return ""
}
