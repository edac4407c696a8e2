package sim

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
)

// client is one process on a machine of its own: the production client over the Redis
// store, with some goroutines that want locks.
//
// Its clock runs as fast as the bubble's timers do, which are its own: both
// hang on one oscillator. That clocks differ in speed is up to the nodes.
//
// While it is paused its goroutines cannot be stopped, but nobody sees them
// run: nothing they send leaves before the process goes on, and what they do
// counts as done then, which is also the time they read on the clock. So they
// behave like a process that is woken up and finds all its timers fired.
type client struct {
	w       *world
	index   int
	c       *leasehold.Client
	store   *store.Store
	links   []*link
	list    list // of nodes that it asks, in scripts that Roll
	workers []*worker

	epoch  clock.Instant
	wrong  atomic.Int64 // error of its wall clock
	woken  atomic.Int64 // what its clock reads while it is paused; 0: not paused
	dead   bool
	gone   atomic.Bool // dead, for dialers
	killed chan struct{}
	ctx    context.Context // ends when it dies, or the run is given up
	end    context.CancelFunc

	// While it is paused:
	patient bool // what arrives is not seen before it goes on
	unseen  []func()
	moving  *Fault // begins when the client next sends what it waits for
	moves   bool   // it has

	wokeAt time.Duration // when it last woke up from a doze
	goneOn time.Duration // when it last went on after a pause
}

// list is which nodes a client asks: one list, or two while one is being replaced by
// the other.
type list uint8

const (
	allNodes list = iota
	bothList      // a majority of each
	oldList       // nodes 1, 2, 3
	newList       // nodes 1, 2, 4
)

var lists = []list{bothList, oldList, newList}

func newClient(w *world, index int) *client {
	c := &client{w: w, index: index, killed: make(chan struct{}), wokeAt: -time.Hour, goneOn: -time.Hour}
	c.epoch = clock.Instant(time.Duration(index+1) * time.Hour)
	c.ctx, c.end = context.WithCancel(context.Background())
	for _, n := range w.nodes {
		c.links = append(c.links, &link{w: w, c: c, n: n})
	}
	if w.script.Roll {
		c.list = lists[index%len(lists)]
	}
	for i := range w.script.Workers {
		c.workers = append(c.workers, newWorker(c, i))
	}
	if index == 0 {
		c.workers = append(c.workers, newCrowd(c)...)
	}
	return c
}

// options are the store's, and its URL.
func (c *client) options() (url string, o *redisstore.Options) {
	o = &redisstore.Options{
		MaxTTL: c.w.script.longest(), NodeTimeout: time.Duration(c.w.script.NodeTimeout) * time.Millisecond,
		Dial: c.dial, Clock: c, Logger: c.w.log, Barge: (c.w.script.Seed+uint64(c.index))%4 == 0,
	}
	var hosts []string
	for i := range c.links {
		hosts = append(hosts, nodeAddress(i))
	}
	switch c.list {
	case oldList:
		hosts = hosts[:3]
	case bothList:
		o.Next = []string{hosts[0], hosts[1], hosts[3]}
		hosts = hosts[:3]
	case newList:
		hosts = []string{hosts[0], hosts[1], hosts[3]}
	}
	return "redis://" + strings.Join(hosts, ","), o
}

// open makes the store, as soon as it can be, and the client.
func (c *client) open() error {
	url, o := c.options()
	for {
		s, err := redisstore.Open(c.ctx, url, o)
		if err == nil {
			c.store = s
			break
		}
		if c.ctx.Err() != nil {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
	var locks *store.Store = c.store
	if c.w.wrap != nil {
		locks = c.w.wrap(c.store)
	}
	c.c = leasehold.New(locks, &leasehold.Options{
		Clock: c, Logger: c.w.log,
		RetryDelay: func(try int) time.Duration { return c.Jitter(10 * time.Millisecond << min(try, 5)) },
	})
	return nil
}

// bootstrap declares the servers empty, as an operator does, and tells them of which
// list they are.
func (c *client) bootstrap() {
	url, o := c.options()
	if _, err := redisadmin.Bootstrap(c.ctx, url, o, false); err != nil {
		panic("sim: bootstrap: " + err.Error())
	}
}

// Now is the clock of the client's machine that counts suspend. It implements
// clock.Simulated with Wall, Jitter and Rest.
func (c *client) Now() clock.Instant {
	if woken := c.woken.Load(); woken != 0 {
		return clock.Instant(woken)
	}
	return c.reads()
}

// reads is the reading of the clock, also while the process is paused.
func (c *client) reads() clock.Instant {
	if c.w.switches.NoBootClock {
		return c.epoch.Add(c.w.timerNow())
	}
	return c.epoch.Add(c.w.now())
}

// Wall is the time of day by the client's wall clock.
func (c *client) Wall() time.Time {
	passed := c.Now().Sub(c.epoch)
	return time.Unix(0, int64(midnight.Add(passed+time.Duration(c.wrong.Load()))))
}

// Jitter is the same at all times: the moments at which two clients began keep their
// actions apart.
func (c *client) Jitter(d time.Duration) time.Duration {
	return (d*3/4 + time.Duration(c.index)*7*grain).Truncate(grain)
}

// Rest returns when all goroutines are blocked: time goes on only then.
func (c *client) Rest(turn int) { time.Sleep(time.Duration(1 + turn)) }

// sees has the client notice something: at once, or when it goes on.
func (c *client) sees(do func()) {
	if c.paused() && c.patient {
		c.unseen = append(c.unseen, do)
		return
	}
	do()
}

func (c *client) paused() bool { return c.woken.Load() != 0 }

// operates reports whether the process is an operator's.
func (c *client) operates() bool { return c.index >= len(c.w.clients) }

// running reports whether the client's code runs now.
func (c *client) running() bool { return !c.dead && !c.paused() }

// pause stops the process for d.
func (c *client) pause(d time.Duration, patient bool) {
	d = d.Truncate(grain)
	if !c.running() || d <= 0 {
		return
	}
	c.patient = patient
	c.woken.Store(int64(c.Now().Add(d)))
	c.w.hist.client("is paused", c.index, d)
	c.w.judge.paused(c)
	c.w.after(d, arrival, c.goOn)
}

// move stops the machine, and its network after that.
func (c *client) move(d time.Duration) {
	c.moving, c.moves = nil, false
	c.pause(d, false)
	for _, l := range c.links {
		c.w.after(d, outside, func() { l.held++ })
		c.w.after(3*d, outside, func() { l.held--; l.heal() })
	}
}

// goOn ends the pause: what waited is sent, and then seen.
func (c *client) goOn() {
	w := c.w
	c.woken.Store(0)
	c.goneOn = w.now()
	w.hist.client("goes on", c.index, 0)
	seen := c.unseen
	c.unseen = nil
	for _, l := range c.links {
		l.transmit()
	}
	t := w.now()
	for _, do := range seen {
		t = w.at(t, arrival, func() { c.sees(do) })
	}
	w.judge.resumed(c)
	w.stirred = true
}

// kill ends the process. Its goroutines have to end too, which is not part of
// what is simulated.
func (c *client) kill() {
	if c.dead {
		return
	}
	c.w.hist.client("dies", c.index, 0)
	for _, l := range c.links {
		l.transmit()
	}
	c.dead = true
	c.gone.Store(true)
	close(c.killed)
	for _, l := range c.links {
		for _, s := range l.streams {
			if !s.closed {
				s.closed = true
				s.c.End(errKilled)
				s.send(segment{fin: true})
			}
		}
	}
	c.w.judge.died(c)
	c.w.stirred = true
	c.end()
}

// sent begins a move if it is due with the client's latest request.
func (c *client) sent(o op) {
	if f := c.moving; f != nil && o.name == [...]string{"acquire", "extend"}[f.Size%2] {
		c.moves = true
	}
}

// replace acts as the operator does when every client should know both lists.
func (c *client) replace() {
	url, o := c.options()
	for c.ctx.Err() == nil && redisadmin.Replace(c.ctx, url, o, nil) != nil {
		time.Sleep(time.Second)
	}
}
