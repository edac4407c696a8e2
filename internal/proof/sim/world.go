package sim

import (
	"container/heap"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// prologue is how long clients have to connect before anything happens to them.
const prologue = time.Second

// world is one run. Everything outside of the clients' code happens on one
// goroutine, the driver, one event at a time, each when nothing else runs; so
// only the few things that clients' goroutines touch need locks.
type world struct {
	script   Script
	switches Switches
	log      *slog.Logger
	wrap     func(*store.Store) *store.Store // for tests: a store that does something wrong
	rng      *rand.Rand                      // the driver's
	timeline

	stirred bool // a client's goroutine may have been woken
	dozing  bool

	nodes     []*node
	clients   []*client
	operators []*client // no fault hits them, unless it names them
	owners    []owner   // by the number the history gives them; the first is nobody
	names     names
	hist      history
	findings  findings
	judge     watcher
	trace     *trace

	calm     chan struct{} // closed when all faults are over
	calmAt   time.Duration // when that is
	working  atomic.Int64  // workers that are not done
	poke     chan struct{} // wakes the driver
	mu       sync.Mutex
	patience time.Duration // when the driver stops waiting for workers
	events   int

	lastEvent time.Duration
}

// watcher judges what happens in a world.
type watcher interface {
	look()                                             // at what the clients report; nothing runs meanwhile
	idle()                                             // before every event
	slept()                                            // all clients' machines were suspended
	starved()                                          // workers make no progress
	paused(*client)                                    // the process is stopped
	resumed(*client)                                   // it goes on
	died(*client)                                      // the process is dead
	applied(n *node, o op, said []byte, replayed bool) // a node has executed a command
}

// owner is one attempt to acquire.
type owner struct {
	client, lock int
	ttl          time.Duration
	born         time.Duration
	holder       *claim        // that has it, or had it last
	named        bool          // an operator ends its lease
	freed        bool          // and frees the lock at once
	cut          bool          // a node has ended its lease for an operator
	least        time.Duration // it is not to be released before, unless it is lost
	revived      bool          // an acquire of it was replayed, and done
	left         bool          // it is left to its TTL, as documented
}

// wake has the driver check at this instant.
func (w *world) wake() {
	select {
	case w.poke <- struct{}{}:
	default:
	}
}

func newWorld(s Script, sw Switches, log *slog.Logger) *world {
	w := &world{
		script: s, switches: sw, log: log, timeline: timeline{began: time.Now()},
		rng:  rand.New(rand.NewPCG(s.Seed, 0)),
		calm: make(chan struct{}), poke: make(chan struct{}, 1),
		owners: make([]owner, 1), names: names{hashes: map[string]string{}},
	}
	w.hist.init(&w.timeline)
	w.names.hist = &w.hist
	w.findings.time, w.findings.hist = &w.timeline, &w.hist
	if sw.StepsOnly {
		w.findings.only = Step
	}
	for i := range s.Nodes {
		w.nodes = append(w.nodes, newNode(w, i))
	}
	w.trace = newTrace(w)
	for i := range s.Clients {
		w.clients = append(w.clients, newClient(w, i))
	}
	for i, l := range []list{oldList, bothList} {
		c := newClient(w, s.Clients+i)
		c.workers = nil
		if s.Operator && (i == 0 || s.Clients < maxClients) { // the second has the instants of the last possible worker
			k := newWorker(c, 0)
			k.lane = eventLanes + (maxClients*maxWorkers-i)*workerLanes
			c.workers = append(c.workers, k)
		}
		if s.Roll {
			c.list = l
		}
		w.operators = append(w.operators, c)
	}
	return w
}

// everybody returns all processes with connections.
func (w *world) everybody(yield func(*client) bool) {
	for _, some := range [][]*client{w.clients, w.operators} {
		for _, c := range some {
			if !yield(c) {
				return
			}
		}
	}
}

// enough is time for every worker to get and keep a lock once more: all leases that they may
// hold, one after the other, the leases of dead clients, and a good deal for polls that come
// at the wrong moment.
func (w *world) enough() time.Duration {
	return time.Duration(w.script.Clients*w.script.Workers)*(2*time.Second+4*w.script.longest()) + time.Minute
}

func (w *world) becalm() {
	if w.findings.gaveUp {
		return
	}
	w.hist.say("calm: every fault is over, everybody wants the lock once more")
	w.stirred = true
	close(w.calm)
}

// drive runs the world until all workers are done and their last messages have arrived.
func (w *world) drive() {
	alarm := time.NewTimer(time.Hour)
	defer alarm.Stop()
	go w.begin()
	for c := range w.everybody {
		w.working.Add(int64(len(c.workers)))
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
		w.judge.idle()
		if last < 0 && w.working.Load() == 0 {
			last = now + settle
		}
		if !w.findings.gaveUp && (w.findings.failed() || now > w.patience) {
			w.giveUp()
		}
		if last >= 0 && now >= last {
			return
		}
		if len(w.agenda) > 0 && w.agenda[0].due <= now {
			e := heap.Pop(&w.agenda).(event)
			if e.due == w.lastEvent {
				panic("sim: two events share an instant, so their order is not determined")
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

// begin has the servers declared, and then the clients connect and their workers begin.
func (w *world) begin() {
	w.operators[0].bootstrap()
	for _, c := range w.operators {
		for _, k := range c.workers {
			go k.operate()
		}
	}
	for _, c := range w.clients {
		go func() {
			err := c.open()
			for _, k := range c.workers {
				go k.run(err)
			}
		}()
	}
}

// collect takes the messages and notes of the clients' goroutines.
func (w *world) collect() {
	for c := range w.everybody {
		if !c.running() {
			continue
		}
		for _, l := range c.links {
			l.transmit()
		}
	}
	w.judge.look()
	w.trace.left()
	for _, c := range w.clients {
		if c.moves && c.moving != nil && c.running() {
			c.move(c.moving.last())
		}
	}
}

// owner is what is known of the owner of that number.
func (w *world) owner(n int) *owner {
	for len(w.owners) <= n {
		w.owners = append(w.owners, owner{client: -1, lock: -1, born: w.now(), ttl: w.script.longest()})
	}
	return &w.owners[n]
}

// appears notes the owners that a client has sent a command about.
func (w *world) appears(o op, c *client) {
	for _, n := range o.owners {
		by := w.owner(n)
		if by.client < 0 && !c.operates() {
			by.client, by.lock = c.index, o.lock
		}
		if o.ttl > 0 {
			by.ttl = o.ttl
		}
	}
}

// settle is how long messages under way may take without faults: far less than a lease
// lasts, so that a lock left behind is still there.
const settle = 500 * time.Millisecond

// giveUp ends a run that has failed: all workers stop.
func (w *world) giveUp() {
	if !w.findings.failed() {
		w.judge.starved()
	}
	w.findings.gaveUp = true
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

// stop is what workers watch: no new rounds after it.
func (w *world) stop() bool { return w.timerNow() >= prologue+w.script.span() }
