package sim

import (
	"container/heap"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/proof/modelnode"
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

func (w *world) timerNow() time.Duration { return time.Since(w.began) }

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
		if i < 3 {
			n.list = oldList // only looked at in scripts that Roll
		}
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

func lockName(i int) string { return "lock-" + strconv.Itoa(i+1) }

func lockIndex(name string) int {
	i, _ := strconv.Atoi(strings.TrimPrefix(name, "lock-"))
	return i - 1
}

// stop is what workers watch: no new rounds after it.
func (w *world) stop() bool { return w.timerNow() >= w.script.span() }
