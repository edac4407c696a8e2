package floor

import (
	"context"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
)

func addrs(servers []*redistest.Server) []string {
	var all []string
	for _, s := range servers {
		all = append(all, s.Addr())
	}
	return all
}

func TestFloorLocks(t *testing.T) {
	for work, counters := range map[Work]string{Locks: "0", Counts: "1", Lists: "1"} {
		servers := redistest.StartN(t, 3)
		c, err := Open(addrs(servers), work)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		a, b := c.Pair("x"), c.Pair("x")
		if err := a.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := b.Lock(t.Context()); err != errTaken {
			t.Errorf("a second lock: %v, want %v", err, errTaken)
		}
		if err := b.Unlock(t.Context()); err != errTaken {
			t.Errorf("unlock of what is not held: %v, want %v", err, errTaken)
		}
		if err := a.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := b.Lock(t.Context()); err != nil {
			t.Errorf("lock after the unlock: %v, want no error", err)
		}
		if ms := servers[0].Text(t, "PTTL", "x"); ms == "-1" || ms == "-2" {
			t.Errorf("the lock's TTL is %s ms, want a positive one", ms)
		}
		if got := servers[0].Text(t, "EXISTS", "{x}:token"); got != counters {
			t.Errorf("work %v: %s counters, want %s", work, got, counters)
		}
	}
}

// A majority is enough, and late answers are not taken as those to later requests.
func TestFloorWithManyGoroutines(t *testing.T) {
	for _, work := range []Work{Counts, Lists} {
		manyGoroutines(t, work)
	}
}

func manyGoroutines(t *testing.T, work Work) {
	const goroutines, turns = 64, 50
	servers := redistest.StartN(t, 5)
	servers[0].Text(t, "CONFIG", "SET", "maxmemory", "1") // so it refuses to write
	c, err := Open(addrs(servers), work)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			p := c.Pair("name" + string(rune('A'+g)))
			for range turns {
				if err := p.Lock(t.Context()); err != nil {
					t.Errorf("lock: %v, want no error", err)
					return
				}
				if err := p.Unlock(t.Context()); err != nil {
					t.Errorf("unlock: %v, want no error", err)
					return
				}
			}
		})
	}
	wg.Wait()
	_, after, _ := strings.Cut(servers[1].Text(t, "INFO", "commandstats"), "cmdstat_evalsha:calls=")
	calls, _, _ := strings.Cut(after, ",")
	if n, err := strconv.Atoi(calls); err != nil || (n < 2*goroutines*turns) != (work == Lists) {
		t.Errorf("work %v: %s calls of scripts (%v) for %d steps, want fewer only with lists", work, calls, err, 2*goroutines*turns)
	}
}

func TestFloorEndsWithItsConnection(t *testing.T) {
	servers := redistest.StartN(t, 1)
	c, err := Open(addrs(servers), Locks)
	if err != nil {
		t.Fatal(err)
	}
	p := c.Pair("x")
	servers[0].Kill()
	if err := p.Lock(t.Context()); err == nil {
		t.Error("a lock on a server that was killed: no error, want one")
	}
	c.Close()
	if _, err := Open(addrs(servers), Locks); err == nil {
		t.Error("a connection to a server that was killed: no error, want one")
	}
}

// Contenders of the queue by hand exclude each other and take turns.
func TestQueueByHandIsFair(t *testing.T) {
	for _, nodes := range []int{1, 5} {
		servers := redistest.StartN(t, nodes)
		var mu sync.Mutex
		var holder int
		turns := map[int]int{}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var all sync.WaitGroup
		for who := range 5 {
			l, err := OpenLine(addrs(servers))
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			all.Go(func() {
				p := l.Pair("x")
				for p.Lock(ctx) == nil {
					mu.Lock()
					if holder != 0 {
						t.Errorf("%d has the lock beside %d, want one holder", who, holder-1)
					}
					holder = who + 1
					mu.Unlock()
					runtime.Gosched()
					mu.Lock()
					holder = 0
					if turns[who]++; turns[who] == 100 {
						cancel()
					}
					mu.Unlock()
					if err := p.Unlock(ctx); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		for who := range 5 {
			if turns[who] < 90 {
				t.Errorf("%d nodes: turns of each: %v, want 90 at least", nodes, turns)
				break
			}
		}
	}
}
