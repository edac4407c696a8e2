package sim

import (
	"cmp"
	"container/heap"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/majority"
	"github.com/leasehold-dev/leasehold/internal/modelnode"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// Limits of a script.
const (
	maxNodes   = 7
	maxClients = 6
	maxWorkers = 4
	maxLocks   = 4
)

// world is one run. Everything outside of the clients' code happens on one
// goroutine, the driver, one event at a time, each when nothing else runs; so
// it needs no locks but for the few things that clients' goroutines touch.
type world struct {
	script   Script
	switches Switches
	log      *slog.Logger
	rng      *rand.Rand // the driver's
	began    time.Time
	slept    atomic.Int64 // how much true time is ahead of the bubble's

	agenda  agenda
	lane    int
	stirred bool // a client's goroutine may have been woken
	dozing  bool

	nodes   []*node
	clients []*client
	owners  []owner // by the number the history gives them; the first is nobody
	hist    history
	judge   judge
	spare   []put

	calm     chan struct{} // closed when all faults are over
	calmAt   time.Duration // when that is
	working  atomic.Int64  // workers that are not done
	poke     chan struct{} // wakes the driver
	mu       sync.Mutex
	outbox   []put
	gaveUp   bool
	patience time.Duration // when the driver stops waiting for workers
	events   int

	lastEvent time.Duration
}

// put is a call on its way from a client's goroutine to the driver.
type put struct {
	l       *link
	mc      majority.Call
	refused bool // there was no room in the line: it is not
}

// owner is one attempt to acquire.
type owner struct {
	client, worker, lock int
	born                 time.Duration
	least                time.Duration  // it is not to be released before, unless it is lost
	asked                [maxNodes]bool // an acquire was applied there
	told                 [maxNodes]bool // a release was sent there
}

func (w *world) timerNow() time.Duration { return time.Since(w.began) }

func (w *world) put(l *link, mc majority.Call, refused bool) {
	w.mu.Lock()
	w.outbox = append(w.outbox, put{l, mc, refused})
	w.mu.Unlock()
	w.wake()
}

// wake has the driver look, at this very instant.
func (w *world) wake() {
	select {
	case w.poke <- struct{}{}:
	default:
	}
}

func newWorld(s Script, sw Switches, log *slog.Logger) *world {
	w := &world{
		script: s, switches: sw, log: log, began: time.Now(),
		rng:  rand.New(rand.NewPCG(s.Seed, 0)),
		calm: make(chan struct{}), poke: make(chan struct{}, 1),
		owners: make([]owner, 1),
	}
	w.hist.init(w)
	w.judge.init(w)
	for i := range s.Nodes {
		n := &node{w: w, index: i, up: true, locks: make([]modelnode.Lock[int], s.Locks), releasedAt: map[int]clock.Instant{}}
		n.epoch = midnight.Add(time.Duration(w.rng.Int64N(int64(2*clockError))) - clockError)
		n.ppm = w.rng.Int64N(2*clockRate+1) - clockRate
		w.nodes = append(w.nodes, n)
	}
	for i := range s.Clients {
		w.clients = append(w.clients, newClient(w, i))
	}
	for _, f := range s.Faults {
		w.at(f.at(), outside, func() { w.fault(f) })
		w.calmAt = max(w.calmAt, w.overAt(f))
	}
	w.calmAt = max(w.calmAt, s.span()) + 2*time.Second
	w.at(w.calmAt, outside, w.becalm)
	w.patience = w.calmAt + w.enough()
	return w
}

// enough is time for every worker to get and keep a lock once more: all they
// may hold, one after the other, the leases that nobody is left to release, and
// a good deal for polls that come at the wrong moment.
func (w *world) enough() time.Duration {
	return time.Duration(w.script.Clients*w.script.Workers)*(2*time.Second+4*w.script.longest()) + time.Minute
}

func (w *world) becalm() {
	if w.gaveUp {
		return
	}
	w.hist.say("calm: every fault is over, everybody wants the lock once more")
	w.stirred = true
	close(w.calm)
}

// drive runs the world until all workers are done and what they left under way
// has arrived.
func (w *world) drive() {
	alarm := time.NewTimer(time.Hour)
	defer alarm.Stop()
	for _, c := range w.clients {
		for _, k := range c.workers {
			w.working.Add(1)
			go k.run()
		}
	}
	w.stirred = true
	last := time.Duration(-1) // when to stop, once known
	for {
		if w.stirred {
			synctest.Wait()
			w.stirred = false
			w.collect()
			if w.stirred {
				continue
			}
		}
		now := w.now()
		if last < 0 && w.working.Load() == 0 {
			last = now + settle
		}
		if !w.gaveUp && (w.judge.failed() || now > w.patience) {
			w.giveUp()
		}
		if last >= 0 && now >= last {
			return
		}
		if len(w.agenda) > 0 && w.agenda[0].due <= now {
			e := heap.Pop(&w.agenda).(event)
			if e.due == w.lastEvent {
				panic("sim: two events share an instant, so their order is chance")
			}
			w.lastEvent = e.due
			w.events++
			e.do()
			continue
		}
		next := 10 * time.Second
		if len(w.agenda) > 0 {
			next = w.agenda[0].due - now
		}
		if last >= 0 {
			next = min(next, last-now)
		}
		alarm.Reset(next)
		select {
		case <-alarm.C:
		case <-w.poke:
		}
		w.stirred = true
	}
}

// settle is how long what is under way may take when nothing is wrong: far
// less than a lease lasts, so that a lock left behind is still there.
const settle = 500 * time.Millisecond

// giveUp ends a run that has failed: everybody is told to stop.
func (w *world) giveUp() {
	if !w.judge.failed() {
		w.judge.starved()
	}
	w.gaveUp = true
	for _, c := range w.clients {
		c.end()
	}
	select {
	case <-w.calm:
	default:
		close(w.calm)
	}
	w.stirred = true
}

// collect takes what the clients' goroutines have left since, in an order that
// does not depend on which of them ran first.
func (w *world) collect() {
	w.mu.Lock()
	puts := w.outbox
	w.outbox, w.spare = w.spare[:0], puts
	w.mu.Unlock()
	slices.SortStableFunc(puts, comparePuts)
	for _, p := range puts {
		k := &call{l: p.l, mc: p.mc, q: w.address(p)}
		w.hist.send(k, p.refused)
		if k.q.Op == quorum.Release {
			o := &w.owners[k.q.owner]
			o.told[p.l.n.index] = true
			if w.now() < o.least && p.l.c.running() {
				w.judge.wrong(Answers, "o%d is released %v before its least hold is over", k.q.owner, o.least-w.now())
				o.least = 0
			}
		}
		if p.refused {
			continue
		}
		if p.l.c.paused() {
			p.l.c.unsent = append(p.l.c.unsent, unsent{p.l, k})
		} else {
			p.l.send(k)
		}
	}
	w.judge.look()
	for _, c := range w.clients {
		if f := c.moving; f != nil && slices.ContainsFunc(puts, func(p put) bool { return p.l.c == c && f.waitsFor(p) }) {
			c.move(f.last())
		}
	}
	clear(puts)
}

func comparePuts(a, b put) int {
	x, y := a.mc.Payload.(*question), b.mc.Payload.(*question)
	return cmp.Or(
		cmp.Compare(a.l.c.index, b.l.c.index),
		cmp.Compare(a.l.n.index, b.l.n.index),
		cmp.Compare(x.from(), y.from()),
	)
}

// waitsFor says whether a move is to begin with p.
func (f *Fault) waitsFor(p put) bool {
	return p.mc.Payload.(*question).Op == [...]quorum.Op{quorum.Acquire, quorum.Extend}[f.Size%2]
}

// from is the worker a question is about, told by the purpose in the holder's
// description.
func (q *question) from() int {
	if q.worker == 0 {
		purpose := store.DecodeHolder(q.Lease.Owner, q.Lease.Meta).Purpose
		q.worker, _ = strconv.Atoi(strings.TrimPrefix(purpose, "w"))
	}
	return q.worker
}

// address completes a question by what the history calls its owner and lock.
func (w *world) address(p put) *question {
	q := p.mc.Payload.(*question)
	if q.from(); q.owner == 0 {
		q.lock = lockIndex(q.Lease.Name)
		q.owner = w.hist.number(q.Lease.Owner)
		if q.owner == len(w.owners) {
			w.owners = append(w.owners, owner{client: p.l.c.index, worker: q.from(), lock: q.lock, born: w.now()})
		}
	}
	return q
}

func lockName(i int) string { return "lock-" + strconv.Itoa(i+1) }

func lockIndex(name string) int {
	i, _ := strconv.Atoi(strings.TrimPrefix(name, "lock-"))
	return i - 1
}

// stop is what workers watch: no new rounds after it.
func (w *world) stop() bool { return w.timerNow() >= w.script.span() }
