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

// changes is a store whose Downgrade a test can take into its own hands.
type changes struct {
	store.Waiter
	downgrade func(context.Context, store.Lease) (store.Grant, error)
}

func (s *changes) Downgrade(ctx context.Context, r store.Lease) (store.Grant, error) {
	if s.downgrade != nil {
		return s.downgrade(ctx, r)
	}
	return s.Waiter.(store.Changer).Downgrade(ctx, r)
}

func (s *changes) Resize(ctx context.Context, name string, from, to store.Kind) error {
	return s.Waiter.(store.Changer).Resize(ctx, name, from, to)
}

// changing runs f in a bubble, with a client whose store can change locks.
func changing(t *testing.T, f func(*testing.T, *lineBench, *changes)) {
	synctest.Test(t, func(t *testing.T) {
		v := newVirtual()
		m := memstore.New(&memstore.Options{Clock: v})
		t.Cleanup(func() { m.Close() })
		s := &changes{Waiter: m}
		o := leasehold.Options{Clock: v}
		b := &lineBench{bench: &bench{t: t, clock: v, store: scripted(m), c: leasehold.New(s, &o)}, line: &line{under: m}, o: o}
		f(t, b, s)
	})
}

// A writer becomes a reader with a larger token, and no other writer in between. The
// reader's lease is renewed, and has a life of its own.
func TestDowngrade(t *testing.T) {
	changing(t, func(t *testing.T, b *lineBench, _ *changes) {
		rw := b.c.RW("a")
		writer := b.acquire(rw.Write())
		others, next := b.queue(b.strangers().RW("a").Read()), b.queue(b.strangers().RW("a").Write())
		inner, err := rw.Read().Try(writer.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := writer.Downgrade(t.Context()); !errors.Is(err, leasehold.ErrInvalid) || !strings.Contains(err.Error(), "re-entered") {
			t.Errorf("with a lease that re-entered: %v", err)
		}
		b.release(inner)
		reader, err := writer.Downgrade(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if other := others.got(); reader.Token() <= writer.Token() || other.Token() != reader.Token() || !next.waits() {
			t.Errorf("tokens: writer %v, reader %v, another %v; the next writer waits: %v", writer.Token(), reader.Token(), other.Token(), next.waits())
		}
		if err := writer.Err(); !errors.Is(err, leasehold.ErrReleased) || context.Cause(writer.Context()) != err {
			t.Errorf("the writer's lease: %v, %v", err, context.Cause(writer.Context()))
		}
		if _, err := rw.Write().Try(reader.Context()); !errors.Is(err, leasehold.ErrInvalid) {
			t.Errorf("an upgrade: %v", err)
		}
		if _, err := reader.Downgrade(t.Context()); !errors.Is(err, leasehold.ErrInvalid) {
			t.Errorf("a reader's downgrade: %v", err)
		}
		if _, err := writer.Downgrade(t.Context()); !errors.Is(err, leasehold.ErrReleased) {
			t.Errorf("a second downgrade: %v", err)
		}
		time.Sleep(time.Hour)
		b.release(writer) // which does nothing
		b.release(others.got())
		if !next.waits() || reader.Err() != nil {
			t.Fatalf("an hour later the reader has lost its lease: %v", reader.Err())
		}
		b.release(reader)
		if l := next.got(); l.Token() <= reader.Token() {
			t.Errorf("the next writer has token %v after %v", l.Token(), reader.Token())
		}
		b.release(next.got())
		if b.held("a") {
			t.Error("held after the last release")
		}
	})
}

// A downgrade of unknown outcome can be tried again. One that is refused, or that takes
// too long, is a loss.
func TestDowngradeInTrouble(t *testing.T) {
	changing(t, func(t *testing.T, b *lineBench, s *changes) {
		lost := errors.New("the answer was lost")
		for what, c := range map[string]struct {
			downgrade func(context.Context, store.Lease) (store.Grant, error)
			is        error
			over      bool
		}{
			"not sent": {func(context.Context, store.Lease) (store.Grant, error) { return store.Grant{}, lost }, lost, false},
			"answer lost": {func(ctx context.Context, r store.Lease) (store.Grant, error) {
				s.Waiter.(store.Changer).Downgrade(ctx, r)
				return store.Grant{}, lost
			}, lost, false},
			"refused": {func(context.Context, store.Lease) (store.Grant, error) { return store.Grant{}, store.ErrNotHeld }, leasehold.ErrLost, true},
			"too late": {func(ctx context.Context, r store.Lease) (store.Grant, error) {
				b.clock.suspend(time.Minute)
				return s.Waiter.(store.Changer).Downgrade(ctx, r)
			}, leasehold.ErrLost, true},
		} {
			writer := b.acquire(b.c.RW(what).Write())
			s.downgrade = c.downgrade
			_, err := writer.Downgrade(t.Context())
			s.downgrade = nil
			if !errors.Is(err, c.is) || (writer.Err() != nil) != c.over {
				t.Errorf("%s: %v, and then %v", what, err, writer.Err())
			}
			if c.over {
				writer.Release(t.Context())
				continue
			}
			reader, err := writer.Downgrade(t.Context())
			if err != nil || reader.Token() <= writer.Token() {
				t.Errorf("%s, again: %v", what, err)
				continue
			}
			b.release(reader)
		}
	})
}

// The number of permits changes while some are held, and waits for the earlier number end.
func TestResize(t *testing.T) {
	changing(t, func(t *testing.T, b *lineBench, _ *changes) {
		three, one := b.c.Semaphore("a", 3), b.strangers().Semaphore("a", 1)
		if err := b.c.Resize(t.Context(), "a", 3, 1); err != nil {
			t.Errorf("of a semaphore that nobody uses: %v", err)
		}
		held := []*leasehold.Lease{b.acquire(three), b.acquire(three), b.acquire(three)}
		waiting := b.queue(three)
		if err := b.c.Resize(t.Context(), "a", 3, 1); err != nil {
			t.Fatal(err)
		}
		if waiting.waits() || !errors.Is(waiting.err, leasehold.ErrKindMismatch) {
			t.Errorf("a wait for the earlier number: %v", waiting.err)
		}
		if err := b.c.Resize(t.Context(), "a", 4, 2); !errors.Is(err, leasehold.ErrKindMismatch) || !strings.Contains(err.Error(), "semaphore of 4") {
			t.Errorf("from a number that is not in use: %v", err)
		}
		time.Sleep(time.Hour) // and leases go on
		next := b.queue(one)
		for _, l := range held {
			if !next.waits() {
				t.Fatal("a permit beside leases that do not fit")
			}
			b.release(l)
		}
		b.release(next.got())

		for _, n := range [][2]int{{0, 1}, {1, 0}, {-1, 2}} {
			if err := b.c.Resize(t.Context(), "a", n[0], n[1]); !errors.Is(err, leasehold.ErrInvalid) {
				t.Errorf("%v: %v", n, err)
			}
		}
		plain := leasehold.New(b.store, &b.o) // a store that is no Changer
		if err := plain.Resize(t.Context(), "a", 1, 2); !errors.Is(err, leasehold.ErrUnsupported) || !strings.Contains(err.Error(), "memory") {
			t.Errorf("a store that cannot: %v", err)
		}
		if _, err := b.acquire(plain.RW("b").Write()).Downgrade(t.Context()); !errors.Is(err, leasehold.ErrUnsupported) {
			t.Errorf("a store that cannot downgrade: %v", err)
		}
	})
}
