package torture

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/lab/history"
	"github.com/leasehold-dev/leasehold/internal/clock"
)

// disturb stops, continues, kills and replaces the process of one slot until
// ctx ends. When it returns the process runs.
func (r *run) disturb(ctx context.Context, slot int) {
	rng := rand.New(rand.NewPCG(r.Seed, uint64(slot)<<32|0xfa117))
	between := func(least, most time.Duration) time.Duration {
		return least + time.Duration(rng.Int64N(int64(most-least)))
	}
	calmest := min(6*r.TTL, r.For/3) // so that a short run has its share
	for clock.Sleep(ctx, between(min(r.TTL/2, calmest/4), calmest)) {
		if w := r.current(slot); canStop && rng.Float64() < 0.6 {
			r.stops.Add(1)
			f := r.h.Begin(history.Worker(w.Proc), "stopped")
			w.stop()
			clock.Sleep(ctx, between(r.TTL/10, 5*r.TTL/2))
			w.cont()
			r.h.Over(f)
			continue
		}
		r.replace(slot)
	}
}

// replace kills the process of a slot and starts another in its place.
func (r *run) replace(slot int) {
	w := r.current(slot)
	if !w.running() {
		return // of itself: that is for watch to say
	}
	r.kills.Add(1)
	f := r.h.Begin(history.Worker(w.Proc), "killed, and started again")
	w.kill()
	r.h.Over(f)
	r.bury(w)
	p := w.plan
	p.Life++
	next, err := start(p, r.Dir, r.Command)
	if err != nil {
		r.fail(err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slots[slot] = next
}

// bury reads the rest of the history of a process that has ended.
func (r *run) bury(w *process) {
	if err := w.read(r.add(w)); err != nil {
		r.fail(err)
	}
	w.mu.Lock()
	killed := w.killed
	w.mu.Unlock()
	if killed != 0 {
		r.h.Kill(w.Proc, w.Life, killed)
	}
	if err := w.ended(); err != nil {
		r.fail(err)
	}
	w.close()
}

// add returns what puts an event of w into the history.
func (r *run) add(w *process) func(history.Event) error {
	return func(e history.Event) error {
		switch e.Op {
		case history.Granted:
			r.granted.Add(1)
		case history.Unknown:
			r.unknown.Add(1)
		case history.Lost:
			r.lost.Add(1)
		}
		if err := r.h.Add(w.Proc, w.Life, e); err != nil {
			return fmt.Errorf("worker %d: %w", w.Proc, err)
		}
		return nil
	}
}
