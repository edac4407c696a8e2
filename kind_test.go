package leasehold_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

// Readers hold the lock together, and a writer alone. A waiting writer stops readers that
// come later. Those get the lock together after the writer, with a token larger than its own.
func TestReadWrite(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		mine, other := b.c.RW("a"), b.strangers().RW("a")
		first := b.acquire(mine.Write())
		readers := []*turn{b.queue(mine.Read()), b.queue(mine.Read()), b.queue(other.Read())}
		for _, r := range readers {
			if !r.waits() {
				t.Fatal("a reader beside a writer:", r.err)
			}
		}
		b.release(first)
		token := readers[0].got().Token()
		for _, r := range readers {
			if got := r.got().Token(); got != token || got <= first.Token() {
				t.Errorf("a reader has token %v, want that of the other readers, %v, and more than that of the writer before, %v", got, token, first.Token())
			}
		}
		writer := b.queue(other.Write())
		late := []*turn{b.queue(mine.Read()), b.queue(mine.Read())}
		if _, err := mine.Read().Try(t.Context()); !errors.Is(err, leasehold.ErrBusy) {
			t.Errorf("Try of a reader behind a waiting writer: %v, want ErrBusy", err)
		}
		for i, r := range readers {
			if !writer.waits() {
				t.Fatalf("the writer has the lock beside %d readers", len(readers)-i)
			}
			b.release(r.got())
		}
		if next := writer.got(); next.Token() <= token || !late[0].waits() || !late[1].waits() {
			t.Errorf("the writer has token %v, want more than %v of the readers before; the readers after it wait: %v, %v, want both", next.Token(), token, late[0].waits(), late[1].waits())
		}
		b.release(writer.got())
		for _, r := range late {
			if r.got().Token() <= writer.got().Token() {
				t.Errorf("a reader has token %v, want more than %v of the writer before", r.got().Token(), writer.got().Token())
			}
			b.release(r.got())
		}
		if b.held("a") {
			t.Error("held after the last release")
		}
	})
}

// Every goroutine that waits for a lock that several can hold has a place of its own in
// the store's queue: readers of one process get the lock together, before a writer that
// came after them.
func TestReadersOfOneProcessWaitTogether(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		mine, other := b.c.RW("a"), b.strangers().RW("a")
		first := b.acquire(other.Write())
		readers := []*turn{b.queue(mine.Read()), b.queue(mine.Read()), b.queue(mine.Read())}
		writer := b.queue(other.Write())
		late := b.queue(mine.Read())
		b.release(first)
		for n, r := range readers {
			if r.waits() {
				t.Fatalf("reader %d waits behind a writer that came later", n)
			}
		}
		for _, r := range readers {
			b.release(r.got())
		}
		b.release(writer.got())
		b.release(late.got())
	})
}

// In a steady stream of readers, writers, and waiters for one or for all permits, none
// waits for longer than all others together hold the lock once.
func TestNobodyStarves(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		const hold = 10 * time.Millisecond
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var mu sync.Mutex
		turns, longest := make(map[string]int), make(map[string]time.Duration)
		var wg sync.WaitGroup
		stream := func(what string, n int, lock func(*leasehold.Client) *leasehold.Lock) {
			for i := range n {
				l := lock(b.c)
				if i%2 == 1 {
					l = lock(b.strangers())
				}
				wg.Go(func() {
					time.Sleep(time.Duration(i) * hold / 7) // so that they do not all arrive at once
					for ctx.Err() == nil {
						asked := time.Now()
						lease, err := l.Acquire(t.Context())
						if err != nil {
							t.Error(err)
							return
						}
						mu.Lock()
						turns[what]++
						longest[what] = max(longest[what], time.Since(asked))
						mu.Unlock()
						time.Sleep(hold)
						if err := lease.Release(t.Context()); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		stream("reader", 6, func(c *leasehold.Client) *leasehold.Lock { return c.RW("rw").Read() })
		stream("writer", 4, func(c *leasehold.Client) *leasehold.Lock { return c.RW("rw").Write() })
		stream("light", 8, func(c *leasehold.Client) *leasehold.Lock { return c.Semaphore("s", 4) })
		stream("heavy", 2, func(c *leasehold.Client) *leasehold.Lock {
			return c.Semaphore("s", 4).With(leasehold.LockOptions{Weight: 4})
		})
		wg.Wait()
		// At worst a waiter waits until each of the others has held the lock alone.
		if len(turns) != 4 || longest["reader"] > 10*hold || longest["writer"] > 10*hold || longest["light"] > 10*hold || longest["heavy"] > 10*hold {
			t.Errorf("turns %v, want some of all 4; longest waits %v, want %v at most", turns, longest, 10*hold)
		}
	})
}

// If a reader dies, only its own lease ends. A writer gets the lock when the last reader
// is gone.
func TestDeadReader(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		rw := b.c.RW("a")
		dead := b.acquire(rw.Read().With(leasehold.LockOptions{NoRenew: true, TTL: time.Second}))
		living := b.acquire(rw.Read())
		writer := b.queue(rw.Write())
		<-dead.Done()
		time.Sleep(time.Minute)
		if !writer.waits() || living.Err() != nil {
			t.Fatalf("after the death of one of two readers: the writer waits: %v, want true; the other reader's lease: %v, want it held", writer.waits(), living.Err())
		}
		b.release(living)
		b.release(writer.got())
		dead.Release(t.Context())
	})
}

// A semaphore has as many holders as permits, each with a slot and a token of its own.
func TestSemaphore(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		s, other := b.c.Semaphore("a", 3), b.strangers().Semaphore("a", 3)
		held := []*leasehold.Lease{b.acquire(s), b.acquire(other), b.acquire(s)}
		var last leasehold.Token
		for i, l := range held {
			if l.Slot() != i || l.Token() <= last {
				t.Errorf("slot %d with token %v, want slot %d with a token larger than %v", l.Slot(), l.Token(), i, last)
			}
			last = l.Token()
		}
		waiting := []*turn{b.queue(s), b.queue(other), b.queue(s)}
		for _, w := range waiting {
			if !w.waits() {
				t.Fatal("a fourth lease of a semaphore of three:", w.err)
			}
		}
		b.release(held[1])
		if l := waiting[0].got(); l.Slot() != 1 || !waiting[1].waits() {
			t.Errorf("after the release of slot 1: granted slot %d, want 1; the next waits: %v, want true", l.Slot(), waiting[1].waits())
		}
		b.release(held[0])
		b.release(held[2])
		for _, w := range waiting {
			b.release(w.got())
		}
	})
}

// Weights add up, and a heavy waiter is not starved by light ones that come later.
func TestWeights(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		light := b.c.Semaphore("a", 4)
		heavy := light.With(leasehold.LockOptions{Weight: 3})
		first, second := b.acquire(heavy), b.acquire(light)
		w := b.queue(heavy)
		after := b.queue(light)
		b.release(second)
		if !w.waits() || !after.waits() {
			t.Fatal("beside a holder with weight 3 of 4, a waiter with weight 3 or one behind it has ended its wait:", w.err, after.err)
		}
		if _, err := light.Try(t.Context()); !errors.Is(err, leasehold.ErrBusy) {
			t.Errorf("Try of a light lease out of turn: %v, want ErrBusy", err)
		}
		b.release(first)
		b.release(w.got())
		b.release(after.got())
	})
}

// Requests of several goroutines of one process are sent side by side: a slow one holds up
// no other.
func TestSharedLocksAreAskedForSideBySide(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		slow, asked := make(chan struct{}), 0
		b.store.onAcquire(func(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
			b.store.mu.Lock()
			asked++
			first := asked == 1
			b.store.mu.Unlock()
			if first {
				<-slow
			}
			return b.store.Engine.Acquire(ctx, r)
		})
		for _, lock := range []*leasehold.Lock{b.c.RW("rw").Read(), b.c.Semaphore("s", 3)} {
			asked = 0
			first := b.queue(lock)
			second := b.queue(lock)
			if !first.waits() || second.waits() {
				t.Fatalf("the slow request waits: %v, want true; the second waits behind it: %v, want false", first.waits(), second.waits())
			}
			slow <- struct{}{}
			b.release(first.got())
			b.release(second.got())
		}
		if n := b.store.called("reserve"); n != 0 {
			t.Errorf("tokens were reserved %d times, want never", n)
		}
	})
}

// Under contention a goroutine that wants a lock which several can hold waits at once. An
// attempt would only be refused. Once the lock was free, it makes an attempt first again.
func TestContendedKindIsWaitedForAtOnce(t *testing.T) {
	for _, of := range []func(*leasehold.Client) *leasehold.Lock{
		func(c *leasehold.Client) *leasehold.Lock {
			return c.Semaphore("a", 2).With(leasehold.LockOptions{Weight: 2})
		},
		func(c *leasehold.Client) *leasehold.Lock { return c.RW("a").Write() },
	} {
		inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
			other := of(b.strangers())
			var asked []int
			turn := func(contended bool) {
				var held *leasehold.Lease
				if contended {
					held = b.acquire(other)
				}
				before := b.store.called("acquire")
				w := b.queue(of(b.c))
				asked = append(asked, b.store.called("acquire")-before)
				if w.waits() != contended {
					t.Fatalf("the goroutine waits: %v, want %v", w.waits(), contended)
				}
				if contended {
					b.release(held)
				}
				b.release(w.got())
			}
			for _, contended := range []bool{false, true, true, true, false, false} {
				turn(contended)
			}
			if want := []int{1, 1, 0, 0, 0, 1}; !slices.Equal(asked, want) {
				t.Errorf("attempts before the turns: %v, want %v", asked, want)
			}
		})
	}
}

// mutexesOnly is a store that keeps mutexes and no other kind.
type mutexesOnly struct{ *script }

func (s mutexesOnly) Caps() store.Caps {
	c := s.script.Caps()
	c.MutexesOnly, c.Engine = true, "plain"
	return c
}

// A kind that the store does not keep, and a weight or number of permits that makes no
// sense, are refused before anything is sent.
func TestKindsAreRefusedBeforeAnythingIsSent(t *testing.T) {
	m := memstore.New(nil)
	defer m.Close()
	s := scripted(m)
	plain, full := leasehold.New(store.New(mutexesOnly{s}), nil), leasehold.New(store.New(s), nil)
	weight := func(n int) leasehold.LockOptions { return leasehold.LockOptions{Weight: n} }
	for _, c := range []struct {
		name string
		lock *leasehold.Lock
		is   error
		says []string // all of them
	}{
		{"readers of a store of mutexes", plain.RW("a").Read(), leasehold.ErrUnsupported, []string{"plain", "read-write lock"}},
		{"a writer of a store of mutexes", plain.RW("a").Write(), leasehold.ErrUnsupported, []string{"plain", "read-write lock"}},
		{"a semaphore of a store of mutexes", plain.Semaphore("a", 3), leasehold.ErrUnsupported, []string{"plain", "semaphore of 3"}},
		{"no permits", full.Semaphore("a", 0), leasehold.ErrInvalid, []string{"at least one permit"}},
		{"a negative number of permits", full.Semaphore("a", -2), leasehold.ErrInvalid, []string{"at least one permit"}},
		{"too heavy", full.Semaphore("a", 3).With(weight(4)), leasehold.ErrInvalid, []string{"weight 4", "semaphore of 3"}},
		{"a negative weight", full.Semaphore("a", 3).With(weight(-1)), leasehold.ErrInvalid, []string{"Weight is -1"}},
		{"a heavy mutex", full.Mutex("a").With(weight(1)), leasehold.ErrInvalid, []string{"Weight 1", "mutex"}},
		{"a heavy reader", full.RW("a").Read().With(weight(2)), leasehold.ErrInvalid, []string{"Weight 2", "read-write lock"}},
	} {
		_, err := c.lock.Try(t.Context())
		if !errors.Is(err, c.is) {
			t.Errorf("%s: %v, want %v", c.name, err, c.is)
			continue
		}
		for _, text := range c.says {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %q does not say %q", c.name, err, text)
			}
		}
	}
	if n := s.called("acquire"); n != 0 {
		t.Errorf("%d requests were sent, want none", n)
	}
	if l, err := full.Semaphore("a", 1).Try(t.Context()); err != nil || errors.Is(l.Release(t.Context()), leasehold.ErrLost) {
		t.Errorf("a semaphore with one permit: %v", err)
	}
	if l, err := plain.Semaphore("a", 1).Try(t.Context()); err != nil || l.Release(t.Context()) != nil {
		t.Errorf("a semaphore with one permit, in a store of mutexes: %v", err)
	}
}

// While a name is in use it has one kind, and the error for another names both.
func TestNameInUseAsAnotherKind(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		locks := map[string]*leasehold.Lock{
			"mutex":           b.c.Mutex("a"),
			"semaphore of 2":  b.c.Semaphore("a", 2),
			"semaphore of 3":  b.c.Semaphore("a", 3),
			"read-write lock": b.c.RW("a").Read(),
		}
		for inUse, holder := range locks {
			held := b.acquire(holder)
			for asked, lock := range locks {
				if asked == inUse {
					continue
				}
				for how, ask := range map[string]func(context.Context) (*leasehold.Lease, error){"try": lock.Try, "acquire": lock.Acquire} {
					_, err := ask(t.Context())
					if !errors.Is(err, leasehold.ErrKindMismatch) || !strings.Contains(fmt.Sprint(err), "a "+inUse) || !strings.Contains(fmt.Sprint(err), "a "+asked) {
						t.Errorf("%s of a %s while it is a %s: %v, want ErrKindMismatch that names both", how, asked, inUse, err)
					}
				}
				if _, err := lock.Try(held.Context()); !errors.Is(err, leasehold.ErrKindMismatch) {
					t.Errorf("try of a %s with the context of a %s: %v, want ErrKindMismatch", asked, inUse, err)
				}
			}
			b.release(held)
		}
	})
}

// A context re-enters a lease that covers what the inner lock asks for. A lease cannot grow.
func TestReentryOfKinds(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		rw := b.c.RW("rw")
		for _, c := range []struct {
			name         string
			outer, inner *leasehold.Lock
			says         string // why re-entry is refused, or "" if it is not
		}{
			{"a reader in a writer", rw.Write(), rw.Read(), ""},
			{"a reader in a reader", rw.Read(), rw.Read(), ""},
			{"a writer in a reader", rw.Read(), rw.Write(), "cannot become a writer's"},
		} {
			outer := b.acquire(c.outer)
			inner, err := c.inner.Try(outer.Context())
			if c.says == "" && (err != nil || inner.Token() != outer.Token()) {
				t.Errorf("%s: %v, want the token of the outer lease", c.name, err)
			}
			if c.says != "" && (!errors.Is(err, leasehold.ErrInvalid) || !strings.Contains(fmt.Sprint(err), c.says)) {
				t.Errorf("%s: %v, want ErrInvalid that says %q", c.name, err, c.says)
			}
			if err == nil {
				b.release(inner)
			}
			b.release(outer)
		}
		if b.held("rw") {
			t.Error("held after the last release")
		}
	})
}

// Many goroutines of several clients contend for a semaphore and for a read-write lock.
// The limits hold, all of them get all of their turns, and nothing is held at the end.
func TestContentionForKinds(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		const permits, turns = 4, 40
		var mu sync.Mutex
		var weight, readers, writers, most int
		step := func(f func()) {
			mu.Lock()
			defer mu.Unlock()
			f()
			most = max(most, weight)
			if weight > permits || writers > 1 || writers > 0 && readers > 0 {
				t.Errorf("weight %d, want %d at most; %d writers beside %d readers, want one writer alone or none", weight, permits, writers, readers)
			}
		}
		hold := func(l *leasehold.Lock, rng *rand.Rand, enter, leave func()) {
			lease, err := l.Acquire(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			step(enter)
			time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
			step(leave)
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
		var wg sync.WaitGroup
		for n, c := range []*leasehold.Client{b.c, b.c, b.c, b.strangers(), b.strangers()} {
			for m := range 4 {
				rng := rand.New(rand.NewPCG(uint64(n), uint64(m)))
				wg.Go(func() {
					for range turns {
						switch w := 1 + rng.IntN(permits); rng.IntN(3) {
						case 0:
							s := c.Semaphore("s", permits).With(leasehold.LockOptions{Weight: w})
							hold(s, rng, func() { weight += w }, func() { weight -= w })
						case 1:
							hold(c.RW("rw").Read(), rng, func() { readers++ }, func() { readers-- })
						case 2:
							hold(c.RW("rw").Write(), rng, func() { writers++ }, func() { writers-- })
						}
					}
				})
			}
		}
		wg.Wait()
		synctest.Wait()
		if most < 2 || b.held("s") || b.held("rw") {
			t.Errorf("at most %d permits were held at once, want 2 at least; held at the end: %v, %v, want neither", most, b.held("s"), b.held("rw"))
		}
	})
}
