package otel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/adapters/otel"
	"github.com/leasehold-dev/leasehold/internal/testenv/adaptertest"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// roleVar makes the test binary hold a lock of the Redis server that it names.
const roleVar = "LEASEHOLD_OTEL_HOLDS_ON"

func TestMain(m *testing.M) {
	if url := os.Getenv(roleVar); url != "" {
		if err := hold(url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// exported is what a process prints of a span that it has exported.
type exported struct{ Name, Trace, Span string }

// hold holds a lock in a span until its standard input ends. It prints a line when it has
// the lock, and then the spans that it has exported.
func hold(url string) error {
	st, err := redisstore.Open(context.Background(), url, nil)
	if err != nil {
		return err
	}
	defer st.Close()
	spans := tracetest.NewInMemoryExporter()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	o := &leasehold.Options{}
	if _, err := otel.Instrument(o, &otel.Config{TracerProvider: tracers}); err != nil {
		return err
	}
	ctx, span := tracers.Tracer("test").Start(context.Background(), "work")
	err = leasehold.New(st, o).Mutex("a").Do(ctx, func(context.Context, *leasehold.Lease) error {
		fmt.Println("held")
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	})
	span.End()
	for _, s := range spans.GetSpans() {
		json.NewEncoder(os.Stdout).Encode(exported{s.Name, s.SpanContext.TraceID().String(), s.SpanContext.SpanID().String()})
	}
	return err
}

// The span of a wait is linked to the span of the holder, which another process exports.
func TestSpansOfTwoProcessesAreLinked(t *testing.T) {
	url := "redis://" + redistest.Start(t).Addr()
	holder := adaptertest.Again(t, roleVar+"="+url)
	holder.Wants(t, "held")

	st, err := redisstore.Open(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	spans := tracetest.NewInMemoryExporter()
	o := &leasehold.Options{}
	if _, err := otel.Instrument(o, &otel.Config{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))}); err != nil {
		t.Fatal(err)
	}
	closed := false
	lock := leasehold.New(st, o).Mutex("a").With(leasehold.LockOptions{OnWait: func(reason error) {
		var busy *leasehold.BusyError
		if !closed && errors.As(reason, &busy) && busy.Position > 0 {
			closed = true
			holder.In.Close() // we have a place in the queue, so the holder may go
		}
	}})
	l, err := lock.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}

	theirs := map[string]exported{}
	for {
		line, err := holder.Out.ReadBytes('\n')
		if err != nil {
			break
		}
		var s exported
		if err := json.Unmarshal(line, &s); err != nil {
			t.Fatal(err)
		}
		theirs[s.Name] = s
	}
	work, ours := theirs["work"], spans.GetSpans()
	if work.Span == "" || theirs["acquire"].Trace != work.Trace {
		t.Errorf("the holder has exported %v, want work and acquire in one trace", theirs)
	}
	if len(ours) != 1 || len(ours[0].Links) != 1 {
		t.Fatalf("spans %+v, want one with one link", ours)
	}
	if to := ours[0].Links[0].SpanContext; to.TraceID().String() != work.Trace || to.SpanID().String() != work.Span {
		t.Errorf("the wait is linked to %v of trace %v, want %+v", to.SpanID(), to.TraceID(), work)
	}
	if ours[0].SpanContext.TraceID().String() == work.Trace {
		t.Error("both processes have the same trace, want two: else the link shows nothing")
	}
	if events := eventsOf(ours[0]); len(events) < 2 || events[0] != "wait" || events[len(events)-1] != "handoff" {
		t.Errorf("events %v, want from wait to handoff", events)
	}
}
