package sim

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
)

// client is one process on a machine of its own: the production client over the
// production quorum, with some goroutines that want locks.
//
// Its clock runs as fast as the bubble's timers do, which are its own: both
// hang on one oscillator. That clocks differ in speed is up to the nodes.
//
// While it is paused its goroutines can not be stopped, but nobody sees them
// run: nothing they send leaves before the process goes on, and what they do
// counts as done then, which is also the time they read on the clock. So they
// behave like a process that is woken up and finds all its timers fired.
type client struct {
	w       *world
	index   int
	c       *leasehold.Client
	keeper  *driver.Driver
	links   []*link
	list    list // of nodes that it asks, in scripts that Roll
	workers []*worker
	full    []atomic.Bool // per node: nothing more can be put in line

	epoch clock.Instant
	wall  atomic.Int64 // error of its wall clock
	woken atomic.Int64 // what its clock reads while it is paused; 0: not paused
	dead  bool
	ctx   context.Context // ends when it dies, or the run is given up
	end   context.CancelFunc

	// While it is paused:
	patient bool // what arrives is not seen before it goes on
	unseen  []func()
	unsent  []unsent
	moving  *Fault // begins when the client next sends what it waits for

	wokeAt time.Duration // when it last woke up from a doze
	goneOn time.Duration // when it last went on after a pause
}

type unsent struct {
	l *link
	k *call
}

func newClient(w *world, index int) *client {
	c := &client{w: w, index: index, full: make([]atomic.Bool, w.script.Nodes), wokeAt: -time.Hour, goneOn: -time.Hour}
	c.epoch = clock.Instant(time.Duration(index+1) * time.Hour)
	c.ctx, c.end = context.WithCancel(context.Background())
	s := &quorumStore{
		k:      driver.Driver{Encode: c.encode, NodeTimeout: w.script.nodeTimeout, Clock: clock.Func(c.boot), Logger: w.log},
		maxTTL: w.script.longest(),
	}
	if len(w.nodes) > 1 && !w.switches.NoClockWatch {
		s.k.Clocks = driver.NewClocks(len(w.nodes), w.quarantine(), c.wallAhead(), w.log)
	}
	c.keeper = &s.k
	s.k.Jitter = func(d time.Duration) time.Duration { return c.jitter(d) }
	for _, n := range w.nodes {
		l := &link{w: w, c: c, n: n, at: n.index}
		l.ear.l = l
		c.links = append(c.links, l)
		s.k.Nodes = append(s.k.Nodes, l)
	}
	if w.script.Roll {
		c.list = lists[index%len(lists)]
		c.list.join(&s.k)
	}
	cohort := &leasehold.Cohort{}
	if w.script.Pass {
		cohort = &leasehold.Cohort{Passes: 3, For: w.script.longest()}
	}
	c.c = leasehold.New(s, &leasehold.Options{
		Clock: clock.Func(c.boot), Logger: w.log, Cohort: cohort,
		RetryDelay: func(try int) time.Duration { return c.jitter(10 * time.Millisecond << min(try, 5)) },
	})
	for i := range w.script.Workers {
		c.workers = append(c.workers, newWorker(c, i))
	}
	return c
}

// boot is the clock of the client's machine that counts suspend.
func (c *client) boot() clock.Instant {
	if woken := c.woken.Load(); woken != 0 {
		return clock.Instant(woken)
	}
	return c.reads()
}

// reads is what the clock reads, whether or not anybody can look.
func (c *client) reads() clock.Instant {
	if c.w.switches.NoBootClock {
		return c.epoch.Add(c.w.timerNow())
	}
	return c.epoch.Add(c.w.now())
}

// encode makes the payload of a question. The proposal is the time of day the
// client believes in, as the Redis store's is.
func (c *client) encode(q driver.Question, _ any) any {
	s := &question{Question: q}
	if q.Op == quorum.Acquire || q.Op == quorum.Release {
		day := midnight.Add(c.w.now() + time.Duration(c.wall.Load()) + 20*time.Millisecond)
		s.propose = uint64(max(0, day) / 1000)
	}
	if q.Next != nil {
		s.next = c.encode(*q.Next, nil).(*question)
	}
	return s
}

// jitter is the same for all: what two clients do at the same time differs by
// when they began.
func (c *client) jitter(d time.Duration) time.Duration {
	return (d*3/4 + time.Duration(c.index)*7*grain).Truncate(grain)
}

// nodeTimeout is as the Redis store works it out.
func (s *Script) nodeTimeout(ttl time.Duration) time.Duration {
	if s.NodeTimeout > 0 {
		return time.Duration(s.NodeTimeout) * time.Millisecond
	}
	return min(max(ttl/100, 20*time.Millisecond), 500*time.Millisecond)
}

// sees has the client notice something: at once, or when it goes on.
func (c *client) sees(do func()) {
	if c.paused() && c.patient {
		c.unseen = append(c.unseen, do)
		return
	}
	do()
}

func (c *client) paused() bool { return c.woken.Load() != 0 }

// running says whether its code runs now.
func (c *client) running() bool { return !c.dead && !c.paused() }

// pause stops the process for d.
func (c *client) pause(d time.Duration, patient bool) {
	d = d.Truncate(grain)
	if !c.running() || d <= 0 {
		return
	}
	c.patient = patient
	c.woken.Store(int64(c.boot().Add(d)))
	c.w.hist.client("is paused", c, d)
	c.w.judge.pauses(c)
	c.w.after(d, arrival, c.goOn)
}

// move stops the machine, and its network after that.
func (c *client) move(d time.Duration) {
	c.moving = nil
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
	w.hist.client("goes on", c, 0)
	sent, seen := c.unsent, c.unseen
	c.unsent, c.unseen = nil, nil
	for _, u := range sent {
		u.l.send(u.k)
	}
	t := w.now()
	for _, do := range seen {
		t = w.at(t, arrival, func() { c.sees(do) })
	}
	w.judge.goneOn = append(w.judge.goneOn, c)
	w.stirred = true
}

// kill ends the process. Its goroutines have to end too, which is not part of
// what is simulated.
func (c *client) kill() {
	if c.dead {
		return
	}
	c.w.hist.client("dies", c, 0)
	c.dead = true
	for _, l := range c.links {
		if l.conn != nil {
			l.conn.giveUp(store.Unreachable, errKilled)
		}
		l.ear.cut()
	}
	c.w.judge.died(c)
	c.w.stirred = true
	c.end()
}

// quorumStore is a store.Store over simulated nodes, as thin as can be.
type quorumStore struct {
	k      driver.Driver
	maxTTL time.Duration
}

var _ store.Returner = (*quorumStore)(nil)

func (s *quorumStore) Return(ctx context.Context, r, next store.Request) (bool, error) {
	if err := errors.Join(ctx.Err(), r.Check(s.maxTTL), next.Check(s.maxTTL)); err != nil {
		return false, err
	}
	return s.k.ReleaseAndRejoin(ctx, r, next)
}

func (s *quorumStore) Wait(ctx context.Context, r store.Request, reason func(error)) (store.Grant, error) {
	if err := errors.Join(ctx.Err(), r.Check(s.maxTTL)); err != nil {
		s.k.Abandon(r.Owner)
		return store.Grant{}, err
	}
	return s.k.Wait(ctx, r, reason)
}

func (s *quorumStore) Draw(ctx context.Context, r store.Request) (store.Drawn, error) {
	if err := errors.Join(ctx.Err(), r.Check(s.maxTTL)); err != nil {
		return store.Drawn{}, err
	}
	return s.k.ReserveTokens(ctx, r)
}

func (s *quorumStore) Acquire(ctx context.Context, r store.Request) (store.Grant, error) {
	if err := errors.Join(ctx.Err(), r.Check(s.maxTTL)); err != nil {
		return store.Grant{}, err
	}
	return s.k.Acquire(ctx, r)
}

func (s *quorumStore) Renew(ctx context.Context, leases []store.Request) []error {
	if err := ctx.Err(); err != nil {
		errs := make([]error, len(leases))
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
	return s.k.Renew(ctx, leases)
}

func (s *quorumStore) Release(ctx context.Context, r store.Request) error {
	if err := errors.Join(ctx.Err(), r.Check(s.maxTTL)); err != nil {
		return err
	}
	return s.k.Release(ctx, r)
}

func (s *quorumStore) Inspect(context.Context, string) (store.State, error) {
	return store.State{}, store.ErrUnsupported
}

func (s *quorumStore) List(context.Context, string) ([]store.State, error) {
	return nil, store.ErrUnsupported
}

func (s *quorumStore) Caps() store.Caps {
	n := len(s.k.Nodes)
	return store.Caps{Engine: "simulated", Nodes: n, Quorum: quorum.Majority(n), MaxTTL: s.maxTTL, Reach: "network", Clock: "each node's own"}
}

func (s *quorumStore) Close() error { return nil }
