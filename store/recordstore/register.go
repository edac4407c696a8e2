package recordstore

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/rule"
)

// register is what this process knows of one record. At most one write of the process is
// under way for it, and carries out all steps that came up before.
type register struct {
	s         *engine
	name, key string

	mu      sync.Mutex
	last    *snapshot // the newest version known; nil: none
	stale   bool      // a write has met another version
	sent    uint64    // the identifier of the last write
	shared  int       // how many steps read the record first, since others change it
	steps   []*step   // that nobody has begun
	writing bool
	turns   turns              // of the goroutine that writes
	waiters map[string]*waiter // by owner
	stop    context.CancelFunc // ends follow, which runs; nil: it does not run
}

// step is what one caller wants of a record.
type step struct {
	run  func(*txn) // called again if another version than the newest was read
	done chan struct{}
	// The outcome: with maybe it failed, but may have taken effect.
	maybe bool
	err   error
}

// txn is one run of some steps on a version of a record.
type txn struct {
	snap      *snapshot
	now       clock.Instant
	floor     fence.Token // the smallest that a lease in the next version may have
	rec       rule.Record
	touched   map[entry]bool // whose beats are to be new
	wrote     bool           // the record has to be written
	most      int            // bytes of the record; 0: any number
	ambiguous bool           // an earlier run of the steps may have taken effect
	needless  int            // how many of the steps another one has done already
}

func (t *txn) set(r rule.Record) { t.rec, t.wrote = r, true }

// touch gives the lease or place of owner a new beat.
func (t *txn) touch(owner string) {
	if t.touched == nil {
		t.touched = map[entry]bool{}
	}
	t.touched[entry{owner: owner}] = true
}

// maxSteps is how many steps one write carries at most.
const maxSteps = 256

// begin queues a step.
func (g *register) begin(run func(*txn)) *step {
	o := &step{run: run, done: make(chan struct{})}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.steps = append(g.steps, o)
	if g.writing {
		return o
	}
	g.writing = true
	g.s.gate.Stay()
	if g.s.peers == nil {
		go g.write()
		return o
	}
	// Nothing blocks here, so this goroutine carries out what there is. Starting another one
	// would take a third of the time of the step.
	g.mu.Unlock()
	more := g.writeOnce()
	g.mu.Lock()
	if more {
		go g.write()
	} else {
		g.s.gate.Leave()
	}
	return o
}

// wait waits for a step. If ctx ends first, a step that nobody has begun is dropped; another
// one may take effect.
func (g *register) wait(ctx context.Context, o *step) (maybe bool, err error) {
	select {
	case <-o.done:
		return o.maybe, o.err
	case <-ctx.Done():
	}
	g.mu.Lock()
	i := slices.Index(g.steps, o)
	if i >= 0 {
		g.steps = slices.Delete(g.steps, i, i+1)
	}
	g.mu.Unlock()
	select {
	case <-o.done:
		return o.maybe, o.err
	default:
		return i < 0, ctx.Err()
	}
}

// do carries out one step.
func (g *register) do(ctx context.Context, run func(*txn)) (maybe bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	return g.wait(ctx, g.begin(run))
}

// write carries out steps until none is left.
func (g *register) write() {
	defer g.s.gate.Leave()
	for g.writeOnce() {
	}
}

// writeOnce carries out the steps that there are. It reports whether more have come meanwhile.
func (g *register) writeOnce() (more bool) {
	g.mu.Lock()
	n := min(len(g.steps), maxSteps)
	steps := slices.Clone(g.steps[:n])
	g.steps = slices.Delete(g.steps, 0, n)
	g.mu.Unlock()
	maybe, err := g.apply(steps)
	for _, o := range steps {
		o.maybe, o.err = maybe, err
		close(o.done)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.writing = len(g.steps) > 0
	return g.writing
}

// apply carries out the steps with one write. It makes them again from the newest version
// after a conflict. A write without an answer is sent again as it was, until a version shows
// what has become of it.
func (g *register) apply(steps []*step) (maybe bool, err error) {
	ctx, cancel := clock.Bound(context.Background(), g.s.limit)
	defer cancel()
	var w *write // without an answer; nil: there is none
	var last error
	ambiguous := false
	g.giveWay(ctx)
	for try := 0; try == 0 || ctx.Err() == nil; try++ {
		last = cmp.Or(err, last)
		began := g.s.now()
		snap := g.cached(try)
		newest := snap == nil
		if newest {
			if snap, err = g.read(ctx); err != nil {
				if errors.Is(err, ErrRefused) {
					return ambiguous || w != nil, err
				}
				g.s.pause(ctx, try, failed(try))
				continue
			}
		}
		if w != nil {
			switch snap.fateOf(w) {
			case applied:
				return false, nil // with the results of the run that w is of
			case forgotten:
				ambiguous, w = true, nil
			case dead:
				w = nil
			}
		}
		if w == nil {
			t := &txn{snap: snap, now: g.s.now(), most: g.s.most, ambiguous: ambiguous}
			t.rec, t.floor = g.s.withoutEnded(snap, t.now), g.s.floor(snap)
			for _, o := range steps {
				o.run(t)
			}
			if !t.wrote && (newest || t.needless == len(steps)) {
				return false, nil
			}
			if !t.wrote { // refused by a version that may be old
				g.doubt(snap)
				continue
			}
			w = snap.replace(g.name, t.rec, t.touched, g.s.session(), t.now)
		}
		sent := g.s.now()
		w.next.version, err = g.send(ctx, w)
		ended := g.s.now()
		g.turns.wrote(sent, ended)
		switch {
		case err == nil:
			g.accept(w.next)
			g.ring(snap, w.next)
			return false, nil
		case errors.Is(err, ErrRefused):
			return ambiguous || w.sent, err
		case errors.Is(err, ErrConflict) && !w.sent:
			w = nil
		case !errors.Is(err, ErrConflict):
			w.sent = true
		}
		if g.doubt(snap) && (newest || try > 0) { // what was known may have been old for long
			most := failed(try)
			if errors.Is(err, ErrConflict) {
				most = g.s.lost(snap, ended.Sub(began))
			}
			g.s.pause(ctx, try, most)
		}
	}
	// The last request may only say that the time is over.
	return ambiguous || w != nil, g.s.limited(cmp.Or(last, err, ctx.Err()))
}

// send sends a write.
func (g *register) send(ctx context.Context, w *write) (version string, err error) {
	g.mu.Lock()
	g.sent = w.next.last()
	g.mu.Unlock()
	d, informed := g.s.driver.(ChangeWriter)
	if !informed {
		return g.s.driver.Write(ctx, g.key, w.body, w.old.version, g.s.deletable(w.next))
	}
	return d.WriteChange(ctx, g.key, w.body, w.old.version, w.next.change(w.old, g.s.deletable(w.next)))
}

// pause gets contenders out of step: it lasts for about most, or less. Contenders on one machine try again
// at once: while one sleeps, the others write many times.
func (s *engine) pause(ctx context.Context, try int, most time.Duration) {
	if s.peers != nil {
		if try < 32 {
			return
		}
		most = failed(try - 32)
	}
	clock.Sleep(ctx, rand.N(most)+most/8)
}

// failed returns the longest pause after an attempt that has failed.
func failed(try int) time.Duration { return time.Millisecond << min(try, 6) }

// lost returns the longest pause after an attempt that has lost to another client: as long as it took,
// once for each owner ahead of this client in the record. So the holder tries again nearly at once, and
// the more clients are in the queue, the less often do others disturb them.
func (s *engine) lost(snap *snapshot, took time.Duration) time.Duration {
	took = max(took, 100*time.Microsecond)
	return min(took/4+took*time.Duration(snap.ahead()), s.limit/16)
}

// sharedSteps is how many steps read the record first, after one that has found it changed by
// others: one request more, in place of a write that would fail and the same request.
const sharedSteps = 4

// cached returns the newest version known, or nil if the record has to be read first.
func (g *register) cached(try int) *snapshot {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.last == nil || g.stale || try == 0 && g.shared > 0 && len(g.waiters) == 0 {
		return nil
	}
	return g.last
}

// doubt notes that old may not be the newest version. It returns false if a newer one is known.
func (g *register) doubt(old *snapshot) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.last != nil && g.last.number > old.number {
		return false
	}
	g.stale = true
	return true
}

// read reads the record.
func (g *register) read(ctx context.Context) (*snapshot, error) {
	g.mu.Lock()
	known := g.last
	g.mu.Unlock()
	it, err := g.s.driver.Read(ctx, g.key)
	if err != nil {
		return nil, err
	}
	snap, err := g.see(it, known)
	if dater, ok := g.s.driver.(Dater); ok && err == nil && snap.strange && snap.version == it.Version && it.Now.IsZero() {
		if it.Now, err = dater.Now(ctx); err == nil {
			snap, err = g.see(it, snap)
		}
	}
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shared = max(0, g.shared-1); known != nil && known.version != snap.version && snap.last() != g.sent {
		g.shared = sharedSteps
	}
	return snap, nil
}

// see takes in a version that was read, listed or pushed. It returns that version, or a newer one.
// known is the newest version that was known when it was asked for, and nil for a list or a push.
func (g *register) see(it Item, known *snapshot) (*snapshot, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	snap, err := read(g.name, it, g.last, g.s.now())
	if err != nil {
		return nil, err
	}
	switch last := g.last; {
	case last == nil || snap.number > last.number || snap.number == last.number && snap.order > last.order:
		g.setLocked(snap)
	case snap.version == last.version: // it may be dated now
		snap.acknowledged = last.acknowledged
		g.last, g.stale = snap, false
	case last.absent && known == nil: // deleted since, or made by a client that read a smaller floor
		g.stale = true // the next step reads which
		return snap, nil
	case last != known: // this client has learned of a later one meanwhile
		return last, nil
	case last.absent: // another client read a smaller floor, and has made the record
		g.setLocked(snap)
	default:
		g.s.log.Warn("a record has gone back: the engine has lost writes, or was restored from a backup", "lock", g.name, "from", last.number, "to", snap.number)
		g.setLocked(snap)
	}
	return snap, nil
}

// accept takes in a version that this client has written. Its push can come before the answer.
func (g *register) accept(next *snapshot) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if next.acknowledged = true; g.last == nil || next.number >= g.last.number {
		g.setLocked(next)
	}
}

// setLocked makes next the newest version known.
func (g *register) setLocked(next *snapshot) {
	g.last, g.stale = next, false
	g.wakeLocked()
}
