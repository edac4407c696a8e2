package leasehold_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// contend has goroutines of several processes take one lock with different options. A
// third of them give up early. It checks that one goroutine holds the lock at a time, that
// tokens rise, that every call returns, and that no queue, place or lease is left.
func contend(t *testing.T, stores []*store.Store, goroutines, turns int, terms ...leasehold.LockOptions) {
	var inside, got, gaveUp atomic.Int64
	var last atomic.Uint64
	var wg sync.WaitGroup
	var clients []*leasehold.Client
	for i, st := range stores {
		c := leasehold.New(st, nil)
		clients = append(clients, c)
		for g := range goroutines {
			lock := c.Mutex("contended").With(terms[g%len(terms)])
			rng := rand.New(rand.NewPCG(uint64(i), uint64(g)))
			wg.Go(func() {
				for range turns {
					ctx, cancel := context.WithCancel(t.Context())
					if g%3 == 0 {
						ctx, cancel = context.WithTimeout(t.Context(), time.Duration(rng.IntN(3000))*time.Microsecond)
					}
					l, err := lock.Acquire(ctx)
					cancel()
					if err != nil {
						if !errors.Is(err, context.DeadlineExceeded) {
							t.Error(err)
						}
						gaveUp.Add(1)
						continue
					}
					if n := inside.Add(1); n != 1 {
						t.Errorf("%d holders at once, want 1", n)
					}
					if before := last.Swap(uint64(l.Token())); before >= uint64(l.Token()) {
						t.Errorf("token %v, want more than the last one, %v", l.Token(), before)
					}
					inside.Add(-1)
					if err := l.Release(t.Context()); err != nil {
						t.Error(err)
					}
					got.Add(1)
				}
			})
		}
	}
	wg.Wait()
	if least := int64(len(stores) * (goroutines - (goroutines+2)/3) * turns); got.Load() < least || gaveUp.Load() == 0 {
		t.Errorf("%d calls got the lock, want %d at least; %d gave up, want some", got.Load(), least, gaveUp.Load())
	}
	for _, c := range clients {
		if n := c.Queues(); n != 0 {
			t.Errorf("%d queues are left in a client, want none", n)
		}
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		st, err := stores[0].Inspect(t.Context(), "contended")
		if err == nil && !st.Held && len(st.Queue) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the store still has %+v, %v after 20 s, want a free lock and an empty queue", st, err)
		}
	}
}

func TestContention(t *testing.T) {
	st := memstore.New(nil)
	o := leasehold.LockOptions{}
	contend(t, []*store.Store{st, st, st}, 12, 300, o, leasehold.LockOptions{TTL: 20 * time.Second}, o)
}

// With little contention, most often one goroutine of a process waits or leaves just as
// another arrives.
func TestLowContention(t *testing.T) {
	for goroutines := 1; goroutines <= 3; goroutines++ {
		st := memstore.New(nil)
		contend(t, []*store.Store{st, st, st}, goroutines, 2000, leasehold.LockOptions{})
	}
}

func TestContentionOnRealServers(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		var urls []string
		for _, s := range redistest.StartN(t, nodes) {
			urls = append(urls, s.URL())
		}
		var stores []*store.Store
		for i := range 3 {
			o := patient()
			o.Barge = i == 2
			st, err := redisstore.Open(t.Context(), strings.Join(urls, " "), o)
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			stores = append(stores, st)
		}
		contend(t, stores, 12, 40, leasehold.LockOptions{}, leasehold.LockOptions{TTL: 20 * time.Second})
	}
}
