package leasehold_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

// changes is a store whose Downgrade a test can replace.
type changes struct {
	store.Engine
	downgrade func(context.Context, store.Lease) (store.Grant, error)
	release   func(store.ReleaseRequest)
}

func (s *changes) Release(ctx context.Context, r store.ReleaseRequest) error {
	if s.release != nil {
		s.release(r)
	}
	return s.Engine.Release(ctx, r)
}

func (s *changes) Downgrade(ctx context.Context, r store.Lease) (store.Grant, error) {
	if s.downgrade != nil {
		return s.downgrade(ctx, r)
	}
	return s.Engine.Downgrade(ctx, r)
}

func (s *changes) Resize(ctx context.Context, name string, from, to store.Kind) error {
	return s.Engine.Resize(ctx, name, from, to)
}

// changing runs f in a bubble, with a client whose store can change locks.
func changing(t *testing.T, f func(*testing.T, *queueBench, *changes)) {
	synctest.Test(t, func(t *testing.T) {
		v := newVirtual()
		m := memstore.New(&memstore.Options{Clock: v})
		t.Cleanup(func() { m.Close() })
		s := &changes{Engine: m}
		o := leasehold.Options{Clock: v}
		b := &queueBench{bench: &bench{t: t, clock: v, store: scripted(m), c: leasehold.New(store.New(s), &o)}, waiter: &queueStore{under: m}, o: o}
		f(t, b, s)
	})
}

// A writer becomes a reader with a larger token, and no other writer in between. The
// reader's lease is renewed, and outlives the writer's.
func TestDowngrade(t *testing.T) {
	changing(t, func(t *testing.T, b *queueBench, _ *changes) {
		rw := b.c.RW("a")
		writer := b.acquire(rw.Write())
		others, next := b.queue(b.strangers().RW("a").Read()), b.queue(b.strangers().RW("a").Write())
		inner, err := rw.Read().Try(writer.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := writer.Downgrade(t.Context()); !errors.Is(err, leasehold.ErrInvalid) || !strings.Contains(err.Error(), "re-entered") {
			t.Errorf("downgrade of a lease that is re-entered: %v, want ErrInvalid that says so", err)
		}
		b.release(inner)
		reader, err := writer.Downgrade(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if other := others.got(); reader.Token() <= writer.Token() || other.Token() != reader.Token() || !next.waits() {
			t.Errorf("tokens: writer %v, reader %v, another reader %v, want the readers' equal and larger; the next writer waits: %v, want true", writer.Token(), reader.Token(), other.Token(), next.waits())
		}
		if err := writer.Err(); !errors.Is(err, leasehold.ErrReleased) || context.Cause(writer.Context()) != err {
			t.Errorf("the writer's lease: %v, its context: %v, want ErrReleased for both", err, context.Cause(writer.Context()))
		}
		if _, err := rw.Write().Try(reader.Context()); !errors.Is(err, leasehold.ErrInvalid) {
			t.Errorf("an upgrade: %v, want ErrInvalid", err)
		}
		if _, err := reader.Downgrade(t.Context()); !errors.Is(err, leasehold.ErrInvalid) {
			t.Errorf("a reader's downgrade: %v, want ErrInvalid", err)
		}
		if _, err := writer.Downgrade(t.Context()); !errors.Is(err, leasehold.ErrReleased) {
			t.Errorf("a second downgrade: %v, want ErrReleased", err)
		}
		time.Sleep(time.Hour)
		b.release(writer) // which does nothing
		b.release(others.got())
		if !next.waits() || reader.Err() != nil {
			t.Fatalf("an hour later the next writer waits: %v, want true; the reader's lease: %v, want it held", next.waits(), reader.Err())
		}
		b.release(reader)
		if l := next.got(); l.Token() <= reader.Token() {
			t.Errorf("the next writer has token %v, want more than the readers' %v", l.Token(), reader.Token())
		}
		b.release(next.got())
		if b.held("a") {
			t.Error("held after the last release")
		}
	})
}

// A downgrade ends one lease and begins another, and the observer is notified of both.
func TestDowngradeIsObserved(t *testing.T) {
	changing(t, func(t *testing.T, b *queueBench, s *changes) {
		w := new(watch)
		writer := b.acquire(leasehold.New(store.New(s), &leasehold.Options{Clock: b.clock, Observer: w.observe}).RW("a").Write())
		time.Sleep(time.Second)
		reader, err := writer.Downgrade(context.WithValue(t.Context(), whoKey{}, "reader"))
		if err != nil {
			t.Fatal(err)
		}
		if w.want(t, "acquired", "released", "acquired"); t.Failed() {
			return
		}
		first, over, next := w.events[0], w.events[1], w.events[2]
		if over.Token != writer.Token() || over.Held != time.Second || over.Err != nil {
			t.Errorf("the event of the writer's end is %+v, want token %v, held for 1s and no error", over, writer.Token())
		}
		if next.Token != reader.Token() || next.Call == first.Call || next.Call == 0 || w.who[2] != "reader" {
			t.Errorf("the event of the reader's lease is %+v in the context of %v, want token %v and a call of its own, not %d, in that of the reader", next, w.who[2], reader.Token(), first.Call)
		}
		b.release(writer)
		b.release(reader)
		w.want(t, "acquired", "released", "acquired", "released")
		if e := w.last(); e.Token != reader.Token() {
			t.Errorf("the last event is %+v, want token %v", e, reader.Token())
		}
	})
}

// If the Observer ends the goroutine that has just been downgraded, the lock is released.
func TestDowngradeEndedByAnObserver(t *testing.T) {
	for how, end := range ends {
		changing(t, func(t *testing.T, b *queueBench, s *changes) {
			granted := 0
			c := leasehold.New(store.New(s), &leasehold.Options{Clock: b.clock, Observer: func(_ context.Context, e leasehold.Event) {
				if e.Kind == leasehold.Acquired {
					if granted++; granted == 2 {
						end()
					}
				}
			}})
			writer := b.acquire(c.RW("a").Write())
			if p := calling(func() { writer.Downgrade(t.Context()) }); (p != nil) != (how == "panic") {
				t.Errorf("%s: the caller panicked with %v, want a panic: %v", how, p, how == "panic")
			}
			if b.held("a") {
				t.Errorf("%s: the lock is held, want it free: nobody has its lease", how)
			}
		})
	}
}

// A downgrade of unknown outcome can be tried again. A downgrade that is refused, or that takes
// too long, is a loss.
func TestDowngradeInTrouble(t *testing.T) {
	changing(t, func(t *testing.T, b *queueBench, s *changes) {
		lost := errors.New("the answer was lost")
		for what, c := range map[string]struct {
			downgrade func(context.Context, store.Lease) (store.Grant, error)
			is        error
			over      bool
		}{
			"not sent": {func(context.Context, store.Lease) (store.Grant, error) { return store.Grant{}, lost }, lost, false},
			"answer lost": {func(ctx context.Context, r store.Lease) (store.Grant, error) {
				s.Engine.Downgrade(ctx, r)
				return store.Grant{}, lost
			}, lost, false},
			"refused": {func(context.Context, store.Lease) (store.Grant, error) { return store.Grant{}, store.ErrNotHeld }, leasehold.ErrLost, true},
			"too late": {func(ctx context.Context, r store.Lease) (store.Grant, error) {
				b.clock.suspend(time.Minute)
				return s.Engine.Downgrade(ctx, r)
			}, leasehold.ErrLost, true},
		} {
			writer := b.acquire(b.c.RW(what).Write())
			s.downgrade = c.downgrade
			_, err := writer.Downgrade(t.Context())
			s.downgrade = nil
			if !errors.Is(err, c.is) || (writer.Err() != nil) != c.over {
				t.Errorf("%s: %v, want %v; the writer's lease: %v, want it over: %v", what, err, c.is, writer.Err(), c.over)
			}
			if c.over {
				writer.Release(t.Context())
				continue
			}
			reader, err := writer.Downgrade(t.Context())
			if err != nil || reader.Token() <= writer.Token() {
				t.Errorf("%s, and tried again: %v, want a larger token than %v", what, err, writer.Token())
				continue
			}
			b.release(reader)
		}
	})
}

// If the answer to a downgrade comes so late that the reader's lease is not valid, the writer's
// lease is over before the lock is freed in the store, however well it was renewed meanwhile.
func TestLateDowngradeEndsTheWriterFirst(t *testing.T) {
	changing(t, func(t *testing.T, b *queueBench, s *changes) {
		writer := b.acquire(b.c.RW("a").Write())
		next := b.queue(b.strangers().RW("a").Write())
		s.downgrade = func(ctx context.Context, r store.Lease) (store.Grant, error) {
			time.Sleep(leasehold.DefaultTTL - time.Second)
			return s.Engine.Downgrade(context.WithoutCancel(ctx), r)
		}
		freed := 0
		s.release = func(store.ReleaseRequest) {
			if freed++; !errors.Is(writer.Err(), leasehold.ErrLost) {
				t.Errorf("the lock is freed in the store while the writer's lease says %v, want ErrLost", writer.Err())
			}
		}
		if reader, err := writer.Downgrade(t.Context()); reader != nil || !errors.Is(err, leasehold.ErrLost) || err != writer.Err() {
			t.Errorf("downgrade: %v, %v, want the loss of the writer, %v", reader, err, writer.Err())
		}
		if l := next.got(); freed != 1 {
			t.Errorf("the lock was freed %d times, want once, for the next writer with token %v", freed, l.Token())
		} else {
			s.release = nil
			b.release(l)
		}
	})
}

// The number of permits can change while some are held. Waits for the earlier number end.
func TestResize(t *testing.T) {
	changing(t, func(t *testing.T, b *queueBench, _ *changes) {
		three, one := b.c.Semaphore("a", 3), b.strangers().Semaphore("a", 1)
		if err := b.c.Operator().Resize(t.Context(), "a", 3, 1); err != nil {
			t.Errorf("resize of a semaphore that nobody uses: %v", err)
		}
		held := []*leasehold.Lease{b.acquire(three), b.acquire(three), b.acquire(three)}
		waiting := b.queue(three)
		if err := b.c.Operator().Resize(t.Context(), "a", 3, 1); err != nil {
			t.Fatal(err)
		}
		if waiting.waits() || !errors.Is(waiting.err, leasehold.ErrKindMismatch) {
			t.Errorf("a wait for the earlier number of permits: %v, want ErrKindMismatch", waiting.err)
		}
		if err := b.c.Operator().Resize(t.Context(), "a", 4, 2); !errors.Is(err, leasehold.ErrKindMismatch) || !strings.Contains(err.Error(), "semaphore of 4") {
			t.Errorf("resize from a number that is not in use: %v, want ErrKindMismatch that names it", err)
		}
		time.Sleep(time.Hour) // the leases of the earlier number are renewed
		next := b.queue(one)
		for _, l := range held {
			if !next.waits() {
				t.Fatal("a permit was granted beside leases that already exceed the new number")
			}
			b.release(l)
		}
		b.release(next.got())

		for _, n := range [][2]int{{0, 1}, {1, 0}, {-1, 2}} {
			if err := b.c.Operator().Resize(t.Context(), "a", n[0], n[1]); !errors.Is(err, leasehold.ErrInvalid) {
				t.Errorf("resize from and to %v: %v, want ErrInvalid", n, err)
			}
		}
	})
}
