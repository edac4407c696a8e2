// Package load locks and unlocks as fast as it can, and measures it: how many
// times a second, how long each took, what it cost this process. It knows a lock by an
// interface of two methods, so that one code measures all kinds of locks.
package load

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Pair is the lock of one goroutine, for which nobody else asks. Its methods are
// called alternately, from one goroutine at a time.
type Pair interface {
	// Lock blocks until it holds the lock, or fails.
	Lock(ctx context.Context) error
	// Unlock is called after each Lock that did not fail.
	Unlock(ctx context.Context) error
}

// Result is what one Run measured. One operation is a lock and an unlock.
type Result struct {
	Goroutines int
	Elapsed    time.Duration // until the last operation was finished
	PerSecond  float64       // operations of all goroutines, each by its own time
	Operations uint64        // those that did not fail
	Errors     uint64        // operations that failed
	Err        error         // the first of them
	Cut        int           // operations that the end of the context has cut short
	Lock       Histogram
	Unlock     Histogram
	// The resources that this process used meanwhile.
	CPU    time.Duration // user and system
	Allocs uint64
	Bytes  uint64 // allocated, not held
}

// errorPause keeps a lock that fails at once from being asked for in a busy loop.
const errorPause = time.Millisecond

// Run locks and unlocks every pair over and over for d, each by a
// goroutine of its own, and blocks until all of them have finished the
// operation they are at. When ctx ends earlier, so does Run; an operation that
// fails because of it counts as cut, and nowhere else.
//
// Garbage is collected first, so that a run does not pay for the one before it.
func Run(ctx context.Context, pairs []Pair, d time.Duration) Result {
	workers := make([]worker, len(pairs))
	var over atomic.Bool
	ready, done := sync.WaitGroup{}, sync.WaitGroup{}
	start := make(chan struct{})
	ready.Add(len(pairs))
	for i, p := range pairs {
		done.Go(func() {
			ready.Done()
			<-start
			workers[i].run(ctx, p, &over)
		})
	}
	ready.Wait()
	runtime.GC()
	before := usageNow()
	began := time.Now()
	for i := range workers {
		workers[i].last = began
	}
	timer := time.AfterFunc(d, func() { over.Store(true) })
	close(start)
	done.Wait()
	timer.Stop()
	least := min(time.Since(began), d)
	r := Result{Goroutines: len(pairs), Elapsed: least}
	r.CPU, r.Allocs, r.Bytes = usageNow().since(before)
	for i := range workers {
		r.add(&workers[i], max(least, workers[i].last.Sub(began)))
	}
	return r
}

// worker is one goroutine's part of a run.
type worker struct {
	operations, errors uint64
	err                error
	cut                int
	last               time.Time // when it finished an operation
	lock, unlock       Histogram
	_                  [64]byte // what two workers write shares no cache line
}

func (w *worker) run(ctx context.Context, p Pair, over *atomic.Bool) {
	for !over.Load() && ctx.Err() == nil {
		start := time.Now()
		if err := p.Lock(ctx); err != nil {
			w.failed(ctx, fmt.Errorf("lock: %w", err))
			continue
		}
		locked := time.Now()
		if err := p.Unlock(ctx); err != nil {
			w.failed(ctx, fmt.Errorf("unlock: %w", err))
			continue
		}
		w.last = time.Now()
		w.lock.add(locked.Sub(start))
		w.unlock.add(w.last.Sub(locked))
		w.operations++
	}
}

func (w *worker) failed(ctx context.Context, err error) {
	if ctx.Err() != nil {
		w.cut++
		return
	}
	w.errors++
	w.last = time.Now()
	if w.err == nil {
		w.err = err
	}
	time.Sleep(errorPause)
}

// add adds the figures of a worker that took the given time. Each rate is
// computed over the worker's own time, so that one that finishes late does not
// make the others look slow.
func (r *Result) add(w *worker, took time.Duration) {
	if took > 0 {
		r.PerSecond += float64(w.operations) / took.Seconds()
	}
	r.Elapsed = max(r.Elapsed, took)
	r.Operations += w.operations
	r.Errors += w.errors
	r.Cut += w.cut
	if r.Err == nil {
		r.Err = w.err
	}
	r.Lock.merge(&w.lock)
	r.Unlock.merge(&w.unlock)
}

// PerOperation divides x by the number of operations. It returns 0 if there were
// none.
func (r Result) PerOperation(x float64) float64 {
	if r.Operations == 0 {
		return 0
	}
	return x / float64(r.Operations)
}
