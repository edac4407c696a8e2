package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// A waiter delays its place until a probe shows whether sessions last, but not for long. If the
// probe takes longer, its end also ends a pause between two looks.
func TestWaiterWaitsForTheProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		probing := make(chan struct{})
		w := &waiting{s: &Store{caller: caller{seats: &seats{probing: probing, most: 1}}}}
		took := func(what func()) time.Duration {
			began := time.Now()
			what()
			return time.Since(began)
		}
		if d := took(func() { w.probe(t.Context()) }); d != probedWithin {
			t.Errorf("a place is delayed for %v by a probe that does not end, want %v", d, probedWithin)
		}
		const soon = 10 * time.Millisecond
		time.AfterFunc(soon, func() { close(probing) })
		if d := took(func() { w.rest(t.Context(), time.Hour) }); d != soon {
			t.Errorf("a pause ends after %v, want %v, when the probe ends", d, soon)
		}
		if d := took(func() { w.probe(t.Context()) }); d != 0 {
			t.Errorf("a place is delayed for %v after the probe, want no delay", d)
		}
		w.s.seats.probing = nil
		if d := took(func() { w.rest(t.Context(), time.Hour) }); d != time.Hour {
			t.Errorf("a pause of an hour takes %v", d)
		}
	})
}

// A waiter that finds a seat before a pause looks at once: the server will wake it. If it were
// handed the lock in its pause, all others would wait for it.
func TestWaiterSitsBeforeAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		server := &recorder{answer: func(context.Context) error {
			end()
			return context.Canceled
		}}
		db := sql.OpenDB(server)
		defer db.Close()
		p := &pool{db: db}
		s := &Store{caller: caller{engine: postgresql{}, pool: p, o: Options{Timeout: DefaultTimeout}, calls: calls{await: plain("look")}}, clock: clock.System()}
		s.seats = &seats{s: &s.caller, most: 1}
		s.seats.probed.Store(true) // after the waiter has joined the queue
		w := &waiting{s: s, last: answer{verdict: busy, position: 60, ahead: 1}, pace: pace{ttl: time.Minute}}
		began := time.Now()
		err := w.watch(ctx)
		if took := time.Since(began); took != 0 || !errors.Is(err, context.Canceled) || len(server.said) == 0 || server.said[0] != "look" {
			t.Errorf("%q after %v, %v, want a look at once that fails with %v", server.said, took, err, context.Canceled)
		}
	})
}

// endingEngine ends a context when it has been asked so many times what an error means.
type endingEngine struct {
	engine
	asked *int
	after int
	end   func()
}

func (e endingEngine) fault(err error) fault {
	if *e.asked++; *e.asked == e.after {
		e.end()
	}
	return e.engine.fault(err)
}

// A waiter whose context ends returns the error of the context, at whatever moment that is. The
// server may have told it of a conflict just before.
func TestEndOfContextWinsOverConflicts(t *testing.T) {
	const moments = 60 // a few requests, with a few tries each
	for after := range moments {
		synctest.Test(t, func(t *testing.T) {
			ctx, end := context.WithCancel(t.Context())
			defer end()
			server := &recorder{answer: func(context.Context) error { return errors.New("Error 1213 (40001): Deadlock found") }}
			db := sql.OpenDB(server)
			defer db.Close()
			s := &Store{clock: clock.System(), caller: caller{pool: &pool{db: db}, o: Options{Timeout: 5 * time.Millisecond}}}
			s.engine = endingEngine{mysql{}, new(int), after + 1, end}
			s.seats, s.calls = &seats{s: &s.caller}, calls{ask: plain("ask")}
			w := &waiting{s: s, reason: func(error) {}, pace: pace{ttl: time.Minute}}
			if _, err := w.run(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("the context ended when the store had looked at %d errors: got %v, want %v", after, err, context.Canceled)
			}
		})
	}
}

// lateContext is over at its deadline, as its timer finds out only then.
type lateContext struct {
	context.Context
	deadline time.Time
}

func (c lateContext) Deadline() (time.Time, bool) { return c.deadline, true }

// A connection that fails at the deadline of a call, a moment before the context of the call ends, is
// not the reason.
func TestEndOfContextWinsOverTheTimeoutOfASocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		ctx := lateContext{inner, time.Now()}
		if err := ended(ctx, os.ErrDeadlineExceeded); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a socket has timed out at the deadline: %v, want the end of the context", err)
		}
	})
}

// A call may take as long as it may block in the server, and Options.Timeout beside that.
func TestTimeoutComesBesideTheBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		var left time.Duration
		server := &recorder{answer: func(ctx context.Context) error {
			at, _ := ctx.Deadline()
			left = time.Until(at)
			end()
			return context.Canceled
		}}
		db := sql.OpenDB(server)
		defer db.Close()
		p := &pool{db: db}
		s := &Store{caller: caller{engine: postgresql{}, pool: p, o: Options{Timeout: time.Second / 4}, calls: calls{await: plain("look")}}, clock: clock.System()}
		s.seats = &seats{s: &s.caller, most: 1}
		conn, err := db.Conn(ctx)
		if err != nil {
			t.Fatal(err)
		}
		w := &waiting{s: s, seat: &seat{conn: conn}, signalled: true, last: answer{verdict: busy, position: 2, ahead: 1}, pace: pace{ttl: time.Minute, patient: true}}
		if err := w.watch(ctx); !errors.Is(err, context.Canceled) {
			t.Fatalf("watch: %v, want %v", err, context.Canceled)
		}
		if want := w.pace.block() + s.o.Timeout; left != want {
			t.Errorf("a call that blocks for %v with a time limit of %v ends after %v, want %v", w.pace.block(), s.o.Timeout, left, want)
		}
	})
}
