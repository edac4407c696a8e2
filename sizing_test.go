package leasehold_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// What a lock and a waiter cost is what docs/sizing.md says. The bound is wide, since what
// earlier tests have left in memory may go meanwhile.
func TestSizing(t *testing.T) {
	page, err := os.ReadFile("docs/sizing.md")
	if err != nil {
		t.Fatal(err)
	}
	measured := map[string]float64{}
	is := func(what string, n float64) { measured[what] = n }
	server := redistest.Start(t, "--save", "")
	info := func(field string) float64 {
		m := regexp.MustCompile(`(?m)^` + field + `:(\d+)`).FindStringSubmatch(server.Text(t, "info", "everything"))
		if m == nil {
			t.Fatalf("INFO has no %s", field)
		}
		n, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	open := func() *leasehold.Client {
		st, err := redisstore.Open(t.Context(), "redis://"+server.Addr(), patient())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { st.Close() })
		return leasehold.New(st, nil)
	}
	memory := func() (heap, stacks float64) {
		var m runtime.MemStats
		for range 3 { // for what finalizers and pools keep
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc), float64(m.StackInuse)
	}
	o := leasehold.LockOptions{TTL: 10 * time.Minute}

	before := info("connected_clients")
	c := open()
	warm, err := c.Mutex("warm").With(o).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	is("connections of a process to each Redis server", info("connected_clients")-before)
	if err := warm.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	serverBefore, leases := info("used_memory"), make([]*leasehold.Lease, many)
	heapBefore, _ := memory()
	spread(t, func(i int) (err error) {
		leases[i], err = c.Mutex(fmt.Sprint("many/", i)).With(o).Acquire(t.Context())
		return err
	})
	is("bytes of a lock that is held, at each Redis server", (info("used_memory")-serverBefore)/many)
	heap, _ := memory()
	is("bytes of a lease in the process that holds it", (heap-heapBefore)/many)
	spread(t, func(i int) error { return leases[i].Release(t.Context()) })
	is("bytes of a name after its release, for a day, at each Redis server", (info("used_memory")-serverBefore)/many)
	clear(leases)

	const waiters = store.MaxQueue
	held, err := c.Mutex("contended").With(o).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	clients := make([]*leasehold.Client, waiters)
	for i := range clients {
		clients[i] = open()
		if _, err := clients[i].Mutex("contended").Try(t.Context()); err == nil {
			t.Fatal("the lock has two holders")
		}
	}
	serverBefore = info("used_memory")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	for _, waiting := range clients {
		wg.Go(func() {
			if _, err := waiting.Mutex("contended").With(o).Acquire(ctx); err == nil {
				t.Error("the lock has two holders")
			}
		})
	}
	look, err := redisstore.Open(t.Context(), "redis://"+server.Addr(), patient())
	if err != nil {
		t.Fatal(err)
	}
	defer look.Close()
	for {
		state, err := look.Inspect(t.Context(), "contended")
		if err != nil {
			t.Fatal(err)
		}
		if len(state.Queue) == waiters {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	is("bytes of a process that waits, at each Redis server", (info("used_memory")-serverBefore)/waiters)
	heapBefore, stacksBefore := memory()
	const crowd = 2000
	var waiting sync.WaitGroup
	for range crowd {
		waiting.Add(1)
		said, told := sync.OnceFunc(waiting.Done), o
		told.OnWait = func(error) { said() }
		wg.Go(func() {
			if _, err := c.Mutex("contended").With(told).Acquire(ctx); err == nil {
				t.Error("the lock has two holders")
			}
		})
	}
	waiting.Wait()
	if heap, stacks := memory(); !raced {
		is("bytes of one more goroutine that waits, in its process", (heap-heapBefore+stacks-stacksBefore)/crowd)
	}
	cancel()
	wg.Wait()
	if err := held.Release(t.Context()); err != nil {
		t.Fatal(err)
	}

	for what, n := range measured {
		t.Logf("%s: %.1f", what, n)
		m := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(what) + ` \| ([\d,.]+)`).FindSubmatch(page)
		if m == nil {
			t.Errorf("docs/sizing.md has no line for %q, which is %.1f", what, n)
			continue
		}
		says, err := strconv.ParseFloat(strings.ReplaceAll(string(m[1]), ",", ""), 64)
		if err != nil || n > 3*says || says > 3*n {
			t.Errorf("docs/sizing.md says %s for %q, which is %.1f", m[1], what, n)
		}
	}
}
