package otel

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/adapters/internal/tally"
)

// spans makes a span of each call.
type spans struct {
	tracer  trace.Tracer
	classes classes

	mu      sync.Mutex
	waiting map[uint64]*span // by call
}

// span is that of a call which waits. Its events come one after the other.
type span struct {
	trace.Span
	linked map[trace.SpanID]bool
}

func newSpans(t trace.Tracer, c classes) *spans {
	return &spans{tracer: t, classes: c, waiting: map[uint64]*span{}}
}

func (s *spans) observe(ctx context.Context, e leasehold.Event) {
	switch e.Kind {
	case leasehold.Waiting:
		s.of(ctx, e).waits(e)
	case leasehold.Acquired, leasehold.Handed, leasehold.Failed:
		sp := s.of(ctx, e)
		s.forget(e.Call)
		sp.end(e)
	case leasehold.RenewalFailed:
		trace.SpanFromContext(ctx).AddEvent("leasehold.renewal.failed", trace.WithAttributes(leaseOf(e)...), trace.WithAttributes(message(e.Err)))
	case leasehold.Lost:
		trace.SpanFromContext(ctx).AddEvent("leasehold.lease.lost", trace.WithAttributes(leaseOf(e)...), trace.WithAttributes(cause(tally.Cause(e.Err)), message(e.Err)))
	}
}

// of returns the span of the call that e is about. The span begins when the call did.
func (s *spans) of(ctx context.Context, e leasehold.Event) *span {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sp := s.waiting[e.Call]; sp != nil {
		return sp
	}
	_, started := s.tracer.Start(ctx, "acquire",
		trace.WithTimestamp(time.Now().Add(-e.Waited)),
		trace.WithSpanKind(trace.SpanKindInternal),
		trace.WithAttributes(text("leasehold.lock.name", e.Name)),
		trace.WithAttributes(s.classes.of(e.Name)...))
	sp := &span{Span: started, linked: map[trace.SpanID]bool{}}
	if e.Kind == leasehold.Waiting {
		s.waiting[e.Call] = sp
	}
	return sp
}

func (s *spans) forget(call uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, call)
}

// waits adds the reason to wait.
func (sp *span) waits(e leasehold.Event) {
	attributes := []attribute.KeyValue{message(e.Err)}
	if e.Position > 0 {
		attributes = append(attributes, attribute.Int("leasehold.queue.position", e.Position))
	}
	sp.AddEvent("wait", trace.WithAttributes(attributes...))
	sp.linkHolder(e.Err)
}

// end ends the span with the outcome of its call.
func (sp *span) end(e leasehold.Event) {
	sp.linkHolder(e.Err)
	switch e.Kind {
	case leasehold.Failed:
		sp.SetAttributes(errorType(e))
		if !refused(e.Err) {
			sp.SetStatus(codes.Error, message(e.Err).Value.AsString())
		}
	default:
		sp.SetAttributes(leaseOf(e)...)
		sp.SetAttributes(way(e))
		if e.Kind != leasehold.Acquired {
			sp.AddEvent(tally.Way(e.Kind))
		}
	}
	sp.End()
}

// refused reports whether err only says that the lock is held, to a call that did not ask to
// wait for it. That is an answer, and no failure.
func refused(err error) bool {
	var busy *leasehold.BusyError
	return errors.As(err, &busy) && busy.Err == nil
}

// linkHolder links the span to that of the holder that err names, once.
func (sp *span) linkHolder(err error) {
	var busy *leasehold.BusyError
	if !errors.As(err, &busy) {
		return
	}
	holder := HolderSpan(busy.Holder)
	if !holder.IsValid() || sp.linked[holder.SpanID()] {
		return
	}
	sp.linked[holder.SpanID()] = true
	sp.AddLink(trace.Link{SpanContext: holder, Attributes: []attribute.KeyValue{
		attribute.String("leasehold.link", "holder"),
		text("leasehold.lease.owner", busy.Holder.Owner),
	}})
}

// leaseOf returns the attributes of the lease that e is about.
func leaseOf(e leasehold.Event) []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("leasehold.lease.owner", e.Owner),
		attribute.String("leasehold.lease.token", e.Token.String()),
	}
}

func message(err error) attribute.KeyValue {
	return text("error.message", err.Error())
}

// w3c reads and writes the form of Holder.Trace.
var w3c propagation.TraceContext

const traceparentKey = "traceparent"

// traceparent is an Options.Trace.
func traceparent(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	w3c.Inject(ctx, carrier)
	return carrier[traceparentKey]
}

// HolderSpan returns the span in which a lock was asked for by its holder, as a holder or
// a waiter says of itself (see leasehold.Options.Trace). It is not valid if that is
// unknown.
func HolderSpan(h leasehold.Holder) trace.SpanContext {
	ctx := w3c.Extract(context.Background(), propagation.MapCarrier{traceparentKey: h.Trace})
	return trace.SpanContextFromContext(ctx)
}
