package storetest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
)

// of returns a request of a new attempt for a lock of that kind.
func (t *stage) of(kind store.Kind, weight int64, name string, ttl time.Duration) store.Lease {
	r := t.request(name, ttl)
	r.Owner = store.NewOwnerAt(time.Now())
	r.Kind, r.Weight = kind, weight
	return r
}

// reader and writer return requests for a read-write lock.
func (t *stage) reader(name string) store.Lease { return t.of(store.ReadWrite, 1, name, t.long) }

func (t *stage) writer(name string) store.Lease {
	return t.of(store.ReadWrite, store.ReadWriteLimit, name, t.long)
}

// holders requires every handle to show exactly these holders, in any order.
func (t *observer) holders(what string, want ...store.Lease) {
	t.Helper()
	for _, s := range t.handles() {
		st := t.inspect(s, want[0].Name)
		if st.Kind != want[0].Kind || len(st.Holders) != len(want) || !st.Held {
			t.Fatalf("%s: inspect: %+v, want %d holders of a %v", what, st, len(want), want[0].Kind)
		}
		slots := map[int64]bool{}
		for _, r := range want {
			found := false
			for _, h := range st.Holders {
				if h.Holder.Owner != r.Owner {
					continue
				}
				found = true
				t.sameHolder(what, h.Holder, r)
				t.within(what, h.ExpiresIn, r.TTL)
				if h.Weight != max(r.Weight, 1) || h.Token == 0 {
					t.Fatalf("%s: inspect: %+v, want weight %d", what, h, max(r.Weight, 1))
				}
				if r.Kind.Shared && t.several() {
					continue
				}
				if slots[h.Slot] || h.Slot < 0 || h.Slot >= r.Kind.Limit {
					t.Fatalf("%s: slot %d, want one of %d that no other holder has", what, h.Slot, r.Kind.Limit)
				}
				slots[h.Slot] = true
			}
			if !found {
				t.Fatalf("%s: inspect: holders %+v, want %s among them", what, st.Holders, r.Owner)
			}
		}
	}
}

// checkKindLimit: a semaphore of n has n holders at once, but never more. Each has
// a slot of its own.
func checkKindLimit(t *trial) {
	const n = 3
	kind, name := store.Semaphore(n), t.name()
	var held []store.Lease
	for i := range n {
		r := t.of(kind, 0, name, t.long/2)
		if g := t.acquire(t.handles()[i%len(t.handles())], r); g.Slot < 0 || g.Slot >= n {
			t.Fatalf("granted slot %d, want 0 to %d", g.Slot, n-1)
		}
		held = append(held, r)
	}
	t.holders("a full semaphore", held...)
	for _, s := range t.handles() {
		t.refuse(s, t.of(kind, 0, name, t.long))
	}
	var batch []store.Lease
	for i := range held {
		if err := t.renew(t.first, held[i]); err != nil {
			t.Fatalf("renew of one of several leases: %v", err)
		}
		held[i].TTL = t.long
		r := held[i]
		r.Slots = t.slots[r.Owner]
		batch = append(batch, r)
	}
	start := t.now()
	for i, err := range t.first.Renew(t.Context(), batch) {
		if err != nil {
			t.Fatalf("renew of several leases of one lock: %v", err)
		}
		t.lasts("renewed with others of one lock", batch[i], t.long, start)
	}
	t.release(t.other(), held[1])
	t.notHeld("release of one of several leases, again", t.first.Release(t.Context(), store.ReleaseRequest{Lease: held[1]}))
	t.holders("one permit was released", held[0], held[2])
	t.acquire(t.other(), t.of(kind, 0, name, t.long))
	t.refuse(t.first, t.of(kind, 0, name, t.long))
}

// checkKindContention: however many owners want a semaphore, its limit is not exceeded, each
// slot has one holder, and no two grants have a token in common.
func checkKindContention(t *trial) {
	const n, workers, rounds = 3, 9, 12
	name := t.name()
	var inside, most atomic.Int64
	var slots, last [n]atomic.Int64 // by slot, the number of holders, and the last token
	var tokens sync.Map             // the tokens of all grants
	// The first holder keeps its permit until another holder is there, so that a slow
	// machine cannot run the workers one after the other.
	met, meet := context.WithTimeout(t.Context(), t.patience)
	defer meet()
	var wg sync.WaitGroup
	for i := range workers {
		s := t.handles()[i%len(t.handles())]
		wg.Go(func() {
			for range rounds {
				r := store.WaitRequest{Lease: t.of(store.Semaphore(n), 0, name, t.long)}
				g, err := s.Wait(t.Context(), r, nil)
				if err != nil {
					t.Errorf("wait for a permit: %v", err)
					return
				}
				r = named(r, g)
				t.track(r.Lease)
				if _, twice := tokens.LoadOrStore(t.permitToken(g), true); twice {
					t.Errorf("token %v belongs to two grants", g.Token)
				}
				now := inside.Add(1)
				for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
				}
				if now > 1 {
					meet()
				}
				if now > n {
					t.Errorf("%d holders at once, want %d at most", now, n)
				}
				if g.Slot < 0 || g.Slot >= n {
					t.Errorf("granted slot %d, want 0 to %d", g.Slot, n-1)
				} else if slots[g.Slot].Add(1) != 1 {
					t.Errorf("slot %d has two holders, want one", g.Slot)
				} else if before := last[g.Slot].Swap(int64(g.Token)); before >= int64(g.Token) {
					t.Errorf("slot %d is granted with token %v, want more than %d", g.Slot, g.Token, before)
				}
				<-met.Done()
				time.Sleep(time.Millisecond) // so that the others queue meanwhile
				if g.Slot >= 0 && g.Slot < n {
					slots[g.Slot].Add(-1)
				}
				inside.Add(-1)
				if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r.Lease}); err != nil {
					t.Errorf("release of a permit: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if most.Load() < 2 {
		t.Errorf("at most %d permits were held at once, want 2 at least", most.Load())
	}
	t.vacant("nothing is left of a semaphore", name)
}

// checkKindWeights: weights add up. A heavy waiter is not starved by light owners
// that come later.
func checkKindWeights(t *trial) {
	kind, name := store.Semaphore(5), t.name()
	three, two := t.of(kind, 3, name, t.long), t.of(kind, 2, name, t.long)
	t.acquire(t.first, three)
	t.refuse(t.other(), t.of(kind, 3, name, t.long))
	t.acquire(t.other(), two)
	t.holders("weights that fit together", three, two)
	t.refuse(t.first, t.of(kind, 1, name, t.long))
	heavy := t.queue(store.WaitRequest{Lease: t.of(kind, 4, name, t.long)})[0]
	light := t.queue(store.WaitRequest{Lease: t.of(kind, 1, name, t.long)})[0]
	t.release(t.first, two)
	t.behind(t.other(), t.of(kind, 1, name, t.long), heavy.Lease, light.Lease) // there is room for it, but not for the first in the queue
	t.waits(heavy, light)
	t.release(t.first, three)
	t.gets("a heavy waiter gets its weight", heavy)
	t.gets("a light waiter gets the rest", light)
	t.holders("both waiters have the lock", heavy.Lease, light.Lease)
}

// checkKindTokens: if a release makes room for several waiters, each of them gets a token of
// its own.
func checkKindTokens(t *trial) {
	kind, name := store.Semaphore(5), t.name()
	all := t.of(kind, 5, name, t.long)
	g := t.acquire(t.first, all)
	tokens := map[permitToken]bool{}
	add := func(what string, g store.Grant) {
		t.Helper()
		its := t.permitToken(g)
		if tokens[its] {
			t.Fatalf("%s: token %v belongs to two grants", what, g.Token)
		}
		tokens[its] = true
	}
	add("the first", g)
	var requests []store.WaitRequest
	for range 3 {
		requests = append(requests, store.WaitRequest{Lease: t.of(kind, 1, name, t.long)})
	}
	queue := t.queue(requests...)
	t.release(t.first, all)
	for _, w := range queue {
		t.gets("all that fit together get the lock", w)
		add("one that waited", w.grant)
	}
	next := t.acquire(t.other(), t.of(kind, 1, name, t.long))
	add("the next", next)
	for its := range tokens {
		if its.token > next.Token {
			t.Fatalf("token %v was granted after %v, want a larger one", next.Token, its.token)
		}
	}
}

// checkKindReadWrite: readers hold a lock together, and a writer alone. Readers share a token
// (over several nodes, each may have its own). It is larger than that of the writer before,
// and smaller than that of the writer after.
func checkKindReadWrite(t *trial) {
	name := t.name()
	writer := t.writer(name)
	last := t.acquire(t.first, writer).Token
	for _, s := range t.handles() {
		t.refuse(s, t.reader(name))
		t.refuse(s, t.writer(name))
	}
	t.release(t.other(), writer)
	var readers []store.Lease
	var token fence.Token // the readers share it
	for i := range 3 {
		r := t.reader(name)
		g := t.acquire(t.handles()[i%len(t.handles())], r)
		if g.Token <= last {
			t.Fatalf("a reader was granted token %v after the writer's %v, want a larger one", g.Token, last)
		}
		if i > 0 && g.Token != token && !t.several() {
			t.Fatalf("a reader was granted token %v beside a reader with %v, want the same", g.Token, token)
		}
		token = max(token, g.Token)
		readers = append(readers, r)
	}
	t.holders("readers", readers...)
	for _, s := range t.handles() {
		t.refuse(s, t.writer(name))
	}
	for _, r := range readers {
		t.refuse(t.first, t.writer(name))
		t.release(t.first, r)
	}
	if g := t.acquire(t.other(), t.writer(name)); g.Token <= token {
		t.Fatalf("a writer was granted token %v after the readers' %v, want a larger one", g.Token, token)
	}
}

// checkKindWriterWaits: a waiting writer stops new readers, and readers that came
// later get the lock together, after the writer.
func checkKindWriterWaits(t *trial) {
	name := t.name()
	first := t.reader(name)
	t.acquire(t.first, first)
	writer := t.queue(store.WaitRequest{Lease: t.writer(name)})[0]
	for _, s := range t.handles() {
		t.behind(s, t.reader(name), writer.Lease)
	}
	readers := t.queue(store.WaitRequest{Lease: t.reader(name)}, store.WaitRequest{Lease: t.reader(name)})
	for _, r := range readers {
		if busy := r.busy(); busy != nil && busy.Holder.Waiting != (busy.Holder.Owner != first.Owner) {
			t.Fatalf("the reason of a reader behind a waiter is %q (%+v), want a waiter or the holder %s", busy, busy.Holder, first.Owner)
		}
	}
	t.waits(writer)
	t.release(t.other(), first)
	t.gets("the writer gets the lock after the last reader", writer)
	t.waits(readers...)
	t.holders("a writer", writer.Lease)
	t.release(t.first, writer.Lease)
	for _, r := range readers {
		t.gets("the readers get the lock after the writer", r)
		if r.grant.Token <= writer.grant.Token || r.grant.Token != readers[0].grant.Token && !t.several() {
			t.Fatalf("a reader was granted token %v after the writer's %v, beside a reader with %v", r.grant.Token, writer.grant.Token, readers[0].grant.Token)
		}
	}
	t.holders("readers that waited", readers[0].Lease, readers[1].Lease)
}

// checkKindDeadReader: a reader that dies frees its own lease and no other. A
// writer gets the lock once the last of them is gone, also by expiry.
func checkKindDeadReader(t *trial) {
	name := t.name()
	living, dead := t.reader(name), t.reader(name)
	dead.TTL = t.options.ShortTTL
	t.acquire(t.first, living)
	t.acquire(t.other(), dead)
	writer := t.wait(t.other(), store.WaitRequest{Lease: t.writer(name)})
	t.eventually("the lease of one of two readers ends", func() bool { return writer.over() || len(t.inspect(t.first, name).Holders) == 1 })
	t.holders("the other reader", living)
	t.waits(writer)
	if err := t.renew(t.first, living); err != nil {
		t.Fatalf("renew of the other reader: %v", err)
	}
	t.release(t.first, living)
	t.gets("a writer gets the lock after the last reader", writer)

	// Permits that expire go to the first waiter, all of them.
	name = t.name()
	kind := store.Semaphore(3)
	stays := t.of(kind, 1, name, t.long)
	t.acquire(t.first, stays)
	t.acquire(t.first, t.of(kind, 2, name, t.options.ShortTTL))
	w := t.wait(t.other(), store.WaitRequest{Lease: t.of(kind, 2, name, t.long)})
	t.gets("a waiter gets two permits that expired", w)
	t.holders("both permits", stays, w.Lease)
}

// checkKindMismatch: while a lock is in use it has one kind, and the error for
// another names both.
func checkKindMismatch(t *trial) {
	kinds := []store.Kind{{}, store.Semaphore(2), store.Semaphore(3), store.ReadWrite}
	for i, inUse := range kinds {
		name := t.name()
		r := t.of(inUse, 1, name, t.long)
		t.acquire(t.first, r)
		for j, asked := range kinds {
			if i == j {
				continue
			}
			other := t.of(asked, 1, name, t.long)
			for what, ask := range map[string]func() error{
				"acquire": func() error {
					_, err := t.other().Acquire(t.Context(), store.AcquireRequest{Lease: other})
					return err
				},
				"wait": func() error {
					_, err := t.other().Wait(t.Context(), store.WaitRequest{Lease: other}, nil)
					return err
				},
			} {
				err := ask()
				var kind *store.KindError
				if !errors.Is(err, store.ErrKindMismatch) || !errors.As(err, &kind) {
					t.Fatalf("%s as a %v while it is a %v: got error %v, want a *store.KindError", what, asked, inUse, err)
				}
				if text := err.Error(); kind.InUse != inUse.Normal() || kind.Asked.Normal() != asked.Normal() || !strings.Contains(text, asked.String()) || !strings.Contains(text, inUse.String()) {
					t.Fatalf("%s as a %v while it is a %v: the error says %q, want it to name both", what, asked, inUse, text)
				}
				t.sameHolder(what, kind.Holder, r)
			}
		}
		t.heldBy(r)
		t.release(t.first, r)
		next := t.of(kinds[(i+1)%len(kinds)], 1, name, t.long) // an unused name can become any kind
		t.acquire(t.other(), next)
	}
}
