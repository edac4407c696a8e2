package leasehold_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store"
)

const (
	oneTrace     = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	anotherTrace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
)

// traceOf is an Options.Trace that finds the trace in the context.
func traceOf(ctx context.Context) string {
	trace, _ := ctx.Value(whoKey{}).(string)
	return trace
}

func traced(ctx context.Context, trace string) context.Context {
	return context.WithValue(ctx, whoKey{}, trace)
}

// holderOf is the holder of a lock, as an attempt to have it tells.
func holderOf(t *testing.T, l *leasehold.Lock) store.Holder {
	t.Helper()
	_, err := l.Try(t.Context())
	var busy *leasehold.BusyError
	if !errors.As(err, &busy) {
		t.Fatalf("the lock is not held: %v", err)
	}
	return busy.Holder
}

// The trace that a lock is asked for in is part of the holder's description, for other
// clients as well.
func TestTraceOfTheHolder(t *testing.T) {
	inLine(t, leasehold.Options{Trace: traceOf}, func(t *testing.T, b *lineBench) {
		lock, others := b.c.Mutex("a"), b.strangers().Mutex("a")
		for _, trace := range []string{oneTrace, "", anotherTrace, "nonsense", oneTrace + "\n"} {
			lease, err := lock.Acquire(traced(t.Context(), trace))
			if err != nil {
				t.Fatal(err)
			}
			want := trace
			if trace != oneTrace && trace != anotherTrace {
				want = ""
			}
			if h := holderOf(t, others); h.Trace != want {
				t.Errorf("the trace %q is described as %q", trace, h.Trace)
			}
			_, err = others.Try(t.Context())
			if id := (store.Holder{Trace: want}).TraceID(); id != "" && !strings.Contains(err.Error(), id) {
				t.Errorf("the trace is not named by %q", err)
			}
			b.release(lease)
		}
	})
}

// To the waiters of its own client, the holder of a lease that was passed on has a trace
// of its own.
func TestTraceOfALeasePassedOn(t *testing.T) {
	inLine(t, leasehold.Options{Trace: traceOf}, func(t *testing.T, b *lineBench) {
		lock := b.c.Mutex("a")
		lease, err := lock.Acquire(traced(t.Context(), oneTrace))
		if err != nil {
			t.Fatal(err)
		}
		holder := oneTrace
		for _, trace := range []string{anotherTrace, "", oneTrace} {
			next := b.queueWith(traced(t.Context(), trace), lock)
			if got := busyOf(t, b.queue(lock).gaveUp()).Holder.Trace; got != holder {
				t.Errorf("the holder has the trace %q, want %q", got, holder)
			}
			b.release(lease)
			lease, holder = next.got(), trace
		}
		b.release(lease)
	})
}

// A description with room for the purpose but not for the trace goes without the trace.
func TestTraceWithoutRoom(t *testing.T) {
	inLine(t, leasehold.Options{Trace: traceOf}, func(t *testing.T, b *lineBench) {
		fits := 0
		for length := store.MaxMeta - 400; length < store.MaxMeta; length++ {
			lock := b.c.Mutex("a").With(leasehold.LockOptions{Purpose: strings.Repeat("p", length)})
			plain, errPlain := lock.Acquire(t.Context())
			if errPlain == nil {
				b.release(plain)
			}
			lease, err := lock.Acquire(traced(t.Context(), oneTrace))
			if (err == nil) != (errPlain == nil) {
				t.Fatalf("a purpose of %d bytes: %v, without a trace: %v", length, err, errPlain)
			}
			if err == nil {
				if holderOf(t, b.strangers().Mutex("a")).Trace == oneTrace {
					fits++
				}
				b.release(lease)
			}
		}
		if fits == 0 || fits > 390 {
			t.Errorf("%d of 400 descriptions had room for the trace", fits)
		}
	})
}
