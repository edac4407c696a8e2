package cell

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	lh "github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/bench/locks"
	"github.com/leasehold-dev/leasehold/internal/lab/load"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// HeldFigures are the cost of holding many leases. Figures of the client are those of
// the whole process.
type HeldFigures struct {
	Leases    int
	TTL       time.Duration
	Took      time.Duration // to get them all
	Heap      uint64        // bytes more in use with the leases than without, after a collection
	Resident  uint64        // bytes of memory more, as the system counts it; 0 where it is unknown
	Window    time.Duration // in which what follows was used
	ClientCPU time.Duration
	ServerCPU time.Duration // all servers together
	Commands  uint64
	Lost      int // leases that did not live to the end of the window
}

// takers is the number of goroutines that acquire the leases.
const takers = 256

// held acquires the leases, watches their renewal for a while, and counts those that
// are left.
func (s Spec) held(ctx context.Context, begin func() error) (*HeldFigures, error) {
	// A short run has short leases, so that they are renewed. A server may take as long as
	// with the leases of a whole run.
	st, client, err := locks.Leasehold(ctx, s.Addrs, &redisstore.Options{NodeTimeout: locks.TTL / 100})
	if err != nil {
		return nil, err
	}
	defer st.Close()
	if err := begin(); err != nil {
		return nil, err
	}
	f := &HeldFigures{Leases: s.Leases, TTL: s.TTL}
	leases := make([]*lh.Lease, s.Leases)
	heap, resident := memory()
	start := time.Now()
	if err := take(ctx, client, s.TTL, leases); err != nil {
		return nil, err
	}
	f.Took = time.Since(start)
	heapNow, residentNow := memory()
	f.Heap = heapNow - min(heap, heapNow)
	f.Resident = residentNow - min(resident, residentNow)

	before, err := s.probe()
	if err != nil {
		return nil, err
	}
	cpu, start := load.CPUTime(), time.Now()
	select {
	case <-time.After(s.For):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	f.ClientCPU, f.Window = load.CPUTime()-cpu, time.Since(start)
	after, err := s.probe()
	if err != nil {
		return nil, err
	}
	used := after.since(before)
	f.ServerCPU, f.Commands = used.cpu, used.commands
	for _, l := range leases {
		if l.Err() != nil {
			f.Lost++
		}
	}
	return f, nil
}

func take(ctx context.Context, client *lh.Client, ttl time.Duration, leases []*lh.Lease) error {
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	for range takers {
		wg.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(leases) && failed.Load() == nil; i = next.Add(1) - 1 {
				lock := client.Mutex("bench/held/" + strconv.Itoa(int(i))).With(lh.LockOptions{TTL: ttl})
				err := locks.Insist(ctx, func(ctx context.Context) (err error) {
					leases[i], err = lock.Acquire(ctx)
					return err
				})
				if err != nil {
					err = fmt.Errorf("lease %d of %d: %w", i+1, len(leases), err)
					failed.CompareAndSwap(nil, &err)
					return
				}
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// memory returns the memory in use: on the heap, and of the machine.
func memory() (heap, resident uint64) {
	runtime.GC()
	runtime.GC() // what pools keep goes with the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return m.HeapAlloc, 0
	}
	for line := range strings.Lines(string(status)) {
		if text, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, _ := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "kB")), 10, 64)
			resident = kb << 10
		}
	}
	return m.HeapAlloc, resident
}
