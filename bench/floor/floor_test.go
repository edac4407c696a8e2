package floor

import (
	"context"
	"runtime"
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
	for _, tokens := range []bool{false, true} {
		servers := redistest.StartN(t, 3)
		c, err := Open(addrs(servers), tokens)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		a, b := c.Pair("x"), c.Pair("x")
		if err := a.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := b.Lock(t.Context()); err != errTaken {
			t.Errorf("a second lock: %v", err)
		}
		if err := b.Unlock(t.Context()); err != errTaken {
			t.Errorf("unlock of what is not held: %v", err)
		}
		if err := a.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := b.Lock(t.Context()); err != nil {
			t.Errorf("after unlock: %v", err)
		}
		if ms := servers[0].Text(t, "PTTL", "x"); ms == "-1" || ms == "-2" {
			t.Errorf("the lock's TTL is %s ms", ms)
		}
		if got, want := servers[0].Text(t, "EXISTS", "{x}:token"), map[bool]string{false: "0", true: "1"}[tokens]; got != want {
			t.Errorf("tokens %v: counters there: %s", tokens, got)
		}
	}
}

// A majority is enough, and late answers do not count for later questions.
func TestFloorWithManyGoroutines(t *testing.T) {
	servers := redistest.StartN(t, 5)
	servers[0].Text(t, "CONFIG", "SET", "maxmemory", "1") // it refuses to write
	c, err := Open(addrs(servers), true)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var wg sync.WaitGroup
	for g := range 64 {
		wg.Go(func() {
			p := c.Pair("name" + string(rune('A'+g)))
			for range 50 {
				if err := p.Lock(t.Context()); err != nil {
					t.Errorf("lock: %v", err)
					return
				}
				if err := p.Unlock(t.Context()); err != nil {
					t.Errorf("unlock: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestFloorEndsWithItsConnection(t *testing.T) {
	servers := redistest.StartN(t, 1)
	c, err := Open(addrs(servers), false)
	if err != nil {
		t.Fatal(err)
	}
	p := c.Pair("x")
	servers[0].Kill()
	if err := p.Lock(t.Context()); err == nil {
		t.Error("locked on a server that is gone")
	}
	c.Close()
	if _, err := Open(addrs(servers), false); err == nil {
		t.Error("connected to a server that is gone")
	}
}

// The lock goes round: every process has one turn in each round, and only one has the
// lock.
func TestLineGoesRound(t *testing.T) {
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
						t.Errorf("%d has the lock, and %d as well", holder-1, who)
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
				t.Errorf("%d nodes: turns of each: %v", nodes, turns)
				break
			}
		}
	}
}
