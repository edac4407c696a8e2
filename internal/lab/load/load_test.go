package load

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

// counted is a pair that counts its calls, and checks that they alternate.
type counted struct {
	t               *testing.T
	locks, unlocks  int
	held            bool
	failLock        error // of every second Lock
	failUnlock      error
	lockFor         time.Duration // processor time of Lock
	sleepFor        time.Duration
	allocate        int
	running, atOnce *atomic.Int32
	kept            []byte
}

func (c *counted) Lock(ctx context.Context) error {
	if c.running != nil {
		c.atOnce.Store(max(c.atOnce.Load(), c.running.Add(1)))
	}
	if c.held {
		c.t.Error("locked twice in a row")
	}
	c.locks++
	if c.failLock != nil && c.locks%2 == 0 {
		return c.failLock
	}
	for range c.allocate {
		c.kept = make([]byte, 1024)
	}
	spend(c.lockFor)
	if c.sleepFor > 0 {
		time.Sleep(c.sleepFor)
	}
	c.held = true
	return nil
}

func (c *counted) Unlock(context.Context) error {
	if !c.held {
		c.t.Error("unlocked what was not locked")
	}
	c.held = false
	c.unlocks++
	if c.running != nil {
		c.running.Add(-1)
	}
	return c.failUnlock
}

// spend uses the processor for d.
func spend(d time.Duration) {
	for start := time.Now(); time.Since(start) < d; {
	}
}

const short = 20 * time.Millisecond

func TestRunCountsWhatWasDone(t *testing.T) {
	pairs := make([]Pair, 8)
	for i := range pairs {
		pairs[i] = &counted{t: t}
	}
	r := Run(t.Context(), pairs, short)
	total := 0
	for _, p := range pairs {
		c := p.(*counted)
		if c.locks != c.unlocks || c.held {
			t.Errorf("a pair did %d locks and %d unlocks, want as many; held at the end: %v, want false", c.locks, c.unlocks, c.held)
		}
		total += c.unlocks
	}
	if total == 0 || r.Operations != uint64(total) || r.Errors != 0 || r.Err != nil || r.Goroutines != 8 || r.Elapsed < short {
		t.Errorf("%d operations, want %d; %d errors (%v), want none; %d goroutines, want 8; elapsed %v, want %v at least", r.Operations, total, r.Errors, r.Err, r.Goroutines, r.Elapsed, short)
	}
	if r.Lock.count != r.Operations || r.Unlock.count != r.Operations {
		t.Errorf("%d and %d durations, want one of each for %d operations", r.Lock.count, r.Unlock.count, r.Operations)
	}
	if least := float64(total) / r.Elapsed.Seconds(); r.PerSecond < least*0.999 || r.PerSecond > float64(total)/short.Seconds()*1.001 {
		t.Errorf("%v per second, want %v to %v", r.PerSecond, least, float64(total)/short.Seconds())
	}
}

func TestRunMeasuresTimeCPUAndAllocations(t *testing.T) {
	const busy = 2 * time.Millisecond
	r := Run(t.Context(), []Pair{&counted{t: t, lockFor: busy, allocate: 100}}, 10*short)
	if p50 := r.Lock.Quantile(0.5); p50 < busy*98/100 {
		t.Errorf("median of Lock %v, want %v at least", p50, busy)
	}
	if lock, unlock := r.Lock.Quantile(0.5), r.Unlock.Quantile(0.5); unlock >= lock {
		t.Errorf("median of Unlock %v, want less than that of Lock, %v", unlock, lock)
	}
	if cpu := r.PerOperation(float64(r.CPU)); cpu <= 0 {
		t.Errorf("%v of processor time per operation, want some in %d operations that use nothing else", cpu, r.Operations)
	}
	if a := r.PerOperation(float64(r.Allocs)); a < 100 || a > 150 {
		t.Errorf("%.1f allocations per operation, want 100 to 150", a)
	}
	if b := r.PerOperation(float64(r.Bytes)); b < 100*1024 {
		t.Errorf("%.0f bytes allocated per operation, want 100 KiB at least", b)
	}
}

// Measuring allocates nothing per operation. What it allocates at the start and the end
// vanishes among many operations.
func TestRunItselfAllocatesNothing(t *testing.T) {
	r := Run(t.Context(), []Pair{&counted{t: t}}, 5*short)
	if a := r.PerOperation(float64(r.Allocs)); r.Operations > 10_000 && a > 0.01 {
		t.Errorf("%v allocations per operation over %d operations, want none", a, r.Operations)
	}
}

func TestRunReportsErrors(t *testing.T) {
	no, nope := errors.New("no"), errors.New("nope")
	c := &counted{t: t, failLock: no}
	r := Run(t.Context(), []Pair{c}, 2*short)
	if r.Errors == 0 || !errors.Is(r.Err, no) || r.Operations != uint64(c.unlocks) || r.Errors != uint64(c.locks-c.unlocks) {
		t.Errorf("%d operations, %d errors (%v), want one for each of %d unlocks and the rest of %d locks", r.Operations, r.Errors, r.Err, c.unlocks, c.locks)
	}
	r = Run(t.Context(), []Pair{&counted{t: t, failUnlock: nope}}, short)
	if r.Operations != 0 || r.Errors == 0 || !errors.Is(r.Err, nope) || r.Lock.count != 0 {
		t.Errorf("with failing unlocks: %d operations and %d durations, want none; %d errors (%v), want some", r.Operations, r.Lock.count, r.Errors, r.Err)
	}
	if r.PerSecond != 0 || r.PerOperation(1) != 0 || r.Lock.Quantile(0.99) != 0 {
		t.Errorf("without operations: %v per second, %v per operation, p99 %v, want 0", r.PerSecond, r.PerOperation(1), r.Lock.Quantile(0.99))
	}
}

// blocked waits for the end of its context, after calling asked.
type blocked struct{ asked func() }

func (b blocked) Lock(ctx context.Context) error {
	b.asked()
	<-ctx.Done()
	return ctx.Err()
}

func (blocked) Unlock(context.Context) error { return nil }

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := Run(ctx, []Pair{blocked{cancel}, &counted{t: t}}, time.Hour)
	if r.Errors != 0 || r.Cut != 1 || r.Elapsed > time.Minute {
		t.Errorf("%d errors (%v), want none; %d cut short, want 1; elapsed %v, want soon", r.Errors, r.Err, r.Cut, r.Elapsed)
	}
}

// The elapsed time ends with the last operation, so a pair that hangs does not make the
// others look slow.
func TestElapsedIsUntilTheLastOperation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		r := Run(ctx, []Pair{blocked{func() {}}, &counted{t: t, sleepFor: time.Second}}, time.Minute-time.Millisecond)
		if r.Elapsed != time.Minute || r.Operations != 60 || r.Cut != 1 {
			t.Errorf("elapsed %v, %d operations, %d cut short, want 1m0s, 60 and 1", r.Elapsed, r.Operations, r.Cut)
		}
	})
}

// PerSecond adds the rates of the pairs, so that a slow pair does not lower the rates of the
// others.
func TestSlowPairDoesNotLowerOtherRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, quick := &counted{t: t, sleepFor: time.Hour}, &counted{t: t, sleepFor: time.Second}
		r := Run(t.Context(), []Pair{slow, quick}, time.Minute-time.Millisecond)
		if want := 1.0 + 1.0/3600; r.Elapsed != time.Hour || quick.unlocks != 60 || math.Abs(r.PerSecond-want) > 1e-6 {
			t.Errorf("%v per second, want %v; the quick pair did %d operations, want 60; elapsed %v, want 1h0m0s", r.PerSecond, want, quick.unlocks, r.Elapsed)
		}
	})
}

func TestPairsRunAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, atOnce atomic.Int32
		Run(t.Context(), []Pair{
			&counted{t: t, sleepFor: time.Second, running: &running, atOnce: &atOnce},
			&counted{t: t, sleepFor: time.Second, running: &running, atOnce: &atOnce},
		}, time.Minute)
		if n := atOnce.Load(); n != 2 {
			t.Errorf("%d pairs held their locks at the same time, want 2", n)
		}
	})
}

func TestOfLock(t *testing.T) {
	st := memstore.New(nil)
	defer st.Close()
	locks := leasehold.New(st, nil)
	p := OfLock(locks.Mutex("a"))
	if err := p.Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if state, err := st.Inspect(t.Context(), "a"); err != nil || !state.Held {
		t.Errorf("after Lock: %+v, %v, want it held", state, err)
	}
	if err := OfLock(locks.Mutex("a")).Lock(t.Context()); !errors.Is(err, leasehold.ErrBusy) {
		t.Errorf("a second Lock: %v, want ErrBusy", err)
	}
	if err := p.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if state, err := st.Inspect(t.Context(), "a"); err != nil || state.Held {
		t.Errorf("after Unlock: %+v, %v, want it free", state, err)
	}
	if r := Run(t.Context(), []Pair{p}, short); r.Operations == 0 || r.Err != nil {
		t.Errorf("%d operations, %v, want some and no error", r.Operations, r.Err)
	}
}
