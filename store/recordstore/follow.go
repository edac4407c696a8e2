package recordstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// followLocked makes the register follow the record.
func (g *register) followLocked() {
	if g.stop == nil {
		ctx, stop := g.s.gate.Until(context.Background())
		g.stop = stop
		g.s.gate.Go(func() { g.follow(ctx) })
	}
}

// linger is how long a register goes on following a record that nobody waits for: beginning
// a watch costs the engine more than its pushes.
const linger = 3 * time.Second

// follow takes in new versions of the record while there are waiters.
func (g *register) follow(ctx context.Context) {
	watcher, pushes := g.s.driver.(Watcher)
	var pushed <-chan Item
	rested, idle, broken := 0, time.Duration(0), false
	var seen *snapshot // by the last look
	told := ""         // why there is no watch
	for {
		every := min(g.s.poll<<min(rested/20, 4), g.s.poll*16)
		if pushes && pushed == nil && !broken {
			var err error
			if pushed, err = watcher.Watch(ctx, g.key); err == nil {
				told = ""
			} else if why := err.Error(); why != told && ctx.Err() == nil {
				told = why
				g.s.log.Warn("cannot watch a record, so its waiters poll", "lock", g.name, "err", err)
			}
		}
		if pushed != nil {
			every = g.s.look
		}
		pause := every*3/4 + rand.N(every/2+1)
		began := g.s.now()
		timer := time.NewTimer(pause)
		select {
		case it, ok := <-pushed:
			if broken = !ok; broken { // polls once before the next watch
				pushed = nil
				break
			}
			if _, err := g.see(newest(it, pushed), nil); err != nil {
				g.s.log.Warn("cannot read a record", "lock", g.name, "err", err)
			}
		case <-timer.C:
			broken = false
			snap, err := g.lookAgain(ctx)
			if rested++; err != nil || !snap.sameTurns(seen) {
				rested = 0
			}
			seen = snap
		case <-ctx.Done():
		}
		timer.Stop()
		idle += g.s.now().Sub(began)
		g.mu.Lock()
		if len(g.waiters) > 0 {
			idle = 0
		}
		if ctx.Err() != nil || len(g.waiters) == 0 && (!pushes || idle > linger) {
			g.stop()
			g.stop = nil
			g.mu.Unlock()
			return
		}
		g.mu.Unlock()
	}
}

// newest returns the last item that has arrived.
func newest(it Item, more <-chan Item) Item {
	for {
		select {
		case later, ok := <-more:
			if !ok {
				return it
			}
			it = later
		default:
			return it
		}
	}
}

// lookAgain reads the record, and tells the waiters if that is not possible.
func (g *register) lookAgain(ctx context.Context) (*snapshot, error) {
	bounded, cancel := context.WithTimeout(ctx, g.s.limit)
	defer cancel()
	snap, err := g.read(bounded)
	if err != nil && !errors.Is(context.Cause(ctx), store.ErrClosed) {
		g.mu.Lock()
		defer g.mu.Unlock()
		for _, w := range g.waiters {
			w.troubleLocked(err)
		}
	}
	return snap, err
}

// forgettable reports whether nothing happens with the register at this moment.
func (g *register) forgettable() bool {
	if !g.mu.TryLock() {
		return false
	}
	defer g.mu.Unlock()
	return !g.writing && len(g.steps) == 0 && len(g.waiters) == 0 && g.stop == nil
}
