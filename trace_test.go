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

// holderOf returns the holder of a lock, as the error of an attempt names it.
func holderOf(t *testing.T, l *leasehold.Lock) store.Holder {
	t.Helper()
	_, err := l.Try(t.Context())
	var busy *leasehold.BusyError
	if !errors.As(err, &busy) {
		t.Fatalf("the lock is not held: %v", err)
	}
	return busy.Holder
}

// The trace of the Acquire is part of the holder's description, for other clients as well.
func TestTraceOfTheHolder(t *testing.T) {
	inQueue(t, leasehold.Options{Trace: traceOf}, func(t *testing.T, b *queueBench) {
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
				t.Errorf("a holder with the trace %q is described with %q, want %q", trace, h.Trace, want)
			}
			_, err = others.Try(t.Context())
			if id := (store.Holder{Trace: want}).TraceID(); id != "" && !strings.Contains(err.Error(), id) {
				t.Errorf("%q does not name the trace %s", err, id)
			}
			b.release(lease)
		}
	})
}

// Waiters of the same client see the trace of the present holder, also if that is a goroutine of
// the same client.
func TestTraceOfTheNextHolder(t *testing.T) {
	inQueue(t, leasehold.Options{Trace: traceOf}, func(t *testing.T, b *queueBench) {
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

// If a description has room for the purpose but not for the trace, the trace is left out.
func TestTraceWithoutRoom(t *testing.T) {
	inQueue(t, leasehold.Options{Trace: traceOf}, func(t *testing.T, b *queueBench) {
		fits := 0
		for length := store.MaxMeta - 400; length < store.MaxMeta; length++ {
			lock := b.c.Mutex("a").With(leasehold.LockOptions{Purpose: strings.Repeat("p", length)})
			plain, errPlain := lock.Acquire(t.Context())
			if errPlain == nil {
				b.release(plain)
			}
			lease, err := lock.Acquire(traced(t.Context(), oneTrace))
			if (err == nil) != (errPlain == nil) {
				t.Fatalf("a purpose of %d bytes: %v with a trace, %v without, want both to succeed or fail", length, err, errPlain)
			}
			if err == nil {
				if holderOf(t, b.strangers().Mutex("a")).Trace == oneTrace {
					fits++
				}
				b.release(lease)
			}
		}
		if fits == 0 || fits > 390 {
			t.Errorf("%d of 400 descriptions had room for the trace, want 1 to 390", fits)
		}
	})
}
