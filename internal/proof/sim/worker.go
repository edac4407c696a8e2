package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// worker is a goroutine of a client that wants locks, in one way after the
// other. It draws from a source of its own: its actions depend only on the script and on
// the answers that it gets.
type worker struct {
	w     *world
	c     *client
	index int // in the client, from 1
	rng   *rand.Rand
	lane  int // its part of the instants
	turn  int
	notes []note // what the driver has not seen yet; with the world's mutex
	// wants is the lock that it waits for, as the driver has heard; -1: none.
	wants       int
	wantsWeight int64
	crowd       int    // its place in the crowd, from 1; 0: it is in none
	weight      int64  // how much of a lock it asks for now
	doing       string // in words, for one that does not get on
	since       time.Duration
}

func newWorker(c *client, i int) *worker {
	number := c.index*maxWorkers + i
	return &worker{
		w: c.w, c: c, index: i + 1, wants: -1, lane: eventLanes + number*workerLanes,
		rng: rand.New(rand.NewPCG(c.w.script.Seed, uint64(number)+1)),
	}
}

// lanes shifts d a little, so that waiting for it from now ends at an instant
// that nothing else has.
func (k *worker) lanes(d time.Duration) time.Duration {
	k.turn = (k.turn + workerStep) % workerLanes
	now := k.w.timerNow()
	end := now + max(d, 0)
	end = end - end%grain + time.Duration(k.lane+k.turn)
	if end <= now+max(d, 0) {
		end += grain
	}
	return end - now
}

// upTo draws a duration, the short ones more often.
func (k *worker) upTo(most time.Duration) time.Duration {
	f := k.rng.Float64()
	return time.Duration(f * f * float64(most))
}

func (k *worker) sleep(ctx context.Context, d time.Duration) {
	clock.Sleep(ctx, k.lanes(d))
}

// run runs the worker. The error is why the client could not be opened before it died.
func (k *worker) run(err error) {
	defer k.finish()
	if err != nil {
		return
	}
	k.sleep(k.c.ctx, prologue-k.w.timerNow())
	if k.w.script.Steady && k.c.index == 0 && k.index == 1 {
		k.steady()
	}
	if k.crowd > 0 {
		k.inCrowd()
		return
	}
	for !k.w.stop() && k.c.ctx.Err() == nil {
		k.does("thinks")
		k.sleep(k.c.ctx, k.upTo(k.w.script.longest()/2))
		if k.w.script.Eager && k.rng.IntN(4) == 0 {
			k.again()
		} else {
			k.round()
		}
	}
	k.does("waits for calm")
	<-k.w.calm
	if k.c.ctx.Err() != nil {
		return
	}
	k.sleep(k.c.ctx, k.upTo(time.Second))
	if k.c.list == oldList {
		return // no server answers any more
	}
	k.lastRound()
}

// finish ends the worker's part in the run.
func (k *worker) finish() {
	k.does("is done")
	k.w.working.Add(-1)
	k.w.wake()
}

func (k *worker) does(what string) { k.doing, k.since = what, k.w.timerNow() }

// lock is one of the locks, asked for in this worker's name. Half the time it
// is the first one, so that there is something to wait for.
func (k *worker) lock() (lock int, l *leasehold.Lock, o leasehold.LockOptions) {
	i := 0
	if k.rng.IntN(2) == 0 {
		i = k.rng.IntN(k.w.script.Locks)
	}
	o = leasehold.LockOptions{
		Require: k.requires(),
		TTL:     k.w.script.longest() / time.Duration(1+k.rng.IntN(2)),
		Purpose: fmt.Sprintf("w%d", k.index),
	}
	if k.w.script.Poll {
		o.Tries = 1_000_000
	}
	if k.w.script.Alike {
		o.Purpose = "w1"
	}
	most := o.TTL / time.Duration(2+k.rng.IntN(10))
	o.RetryDelay = func(try int) time.Duration { return k.lanes(5*time.Millisecond + k.upTo(most)) }
	return i, k.one(i), o
}

// one is a lock of the kind that the script gives it, for as much of it as this worker
// wants now.
func (k *worker) one(i int) *leasehold.Lock {
	k.weight = 1
	kind, name := k.w.script.kind(i), lockName(i)
	switch {
	case kind.IsMutex():
		return k.c.c.Mutex(name)
	case kind.Shared && k.crowd == 0 && k.rng.IntN(3) == 0:
		k.weight = kind.Limit
		return k.c.c.RW(name).Write()
	case kind.Shared:
		return k.c.c.RW(name).Read()
	}
	if k.crowd == 0 && k.rng.IntN(3) == 0 {
		k.weight = 1 + k.rng.Int64N(kind.Limit)
	}
	return k.c.c.Semaphore(name, int(kind.Limit)).With(leasehold.LockOptions{Weight: int(k.weight)})
}

// requires is the class that locks require. Without it, no client checks whether the only
// server has forgotten leases.
func (k *worker) requires() store.Class {
	if k.w.script.Nodes == 1 {
		return store.CrashSafe
	}
	return 0
}

// round locks once, in one of several ways.
func (k *worker) round() {
	i, l, o := k.lock()
	ctx := k.c.ctx
	if k.rng.IntN(3) == 0 { // patience has an end, maybe in the middle of things
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, k.lanes(k.upTo(k.w.script.longest())))
		defer stop()
	}
	way := k.rng.IntN(10)
	if way == 0 {
		o.Tries = 1
	}
	k.begins(i, o)
	switch way {
	case 0:
		k.does("tries once")
		k.keep(ctx, o, func() (*leasehold.Lease, error) { return l.With(o).Try(ctx) })
	case 1, 2:
		k.does("acquires")
		k.keep(ctx, o, func() (*leasehold.Lease, error) { return l.With(o).Acquire(ctx) })
	case 3:
		o.NoRenew = true
		k.does("acquires without renewal")
		k.keep(ctx, o, func() (*leasehold.Lease, error) { return l.With(o).Acquire(ctx) })
	case 4:
		o.MaxHold = (o.TTL/8 + k.upTo(2*o.TTL)).Truncate(grain)
		k.does("does, with a longest hold")
		k.do(ctx, l.With(o), o)
	case 5:
		o.MinHold = k.upTo(o.TTL).Truncate(grain)
		k.does("does, with a least hold")
		k.do(ctx, l.With(o), o)
	default:
		k.does("does")
		k.do(ctx, l.With(o), o)
	}
}

// again locks many times in a row, for a moment each, so that the client expects another
// request. Now and then its context ends, maybe while it does.
func (k *worker) again() {
	o := leasehold.LockOptions{Require: k.requires(), TTL: k.w.script.longest(), Purpose: fmt.Sprintf("w%d", k.index)}
	l := k.one(0).With(o)
	patience := k.lanes(k.upTo(2 * k.w.script.longest()))
	ctx, stop := context.WithTimeout(k.c.ctx, patience)
	defer stop()
	k.does("wants a lock again and again")
	for range 5 + k.rng.IntN(20) {
		k.begins(0, o)
		lease, err := l.Acquire(ctx)
		if err != nil {
			k.note(note{kind: refused, err: err})
			return
		}
		c := k.grant(lease, o)
		k.hold(c, lease.Context(), k.upTo(20*time.Millisecond))
		k.release(c, ctx)
	}
}

// keep holds a lease that no function bounds: now and then it extends it, and
// now and then it releases it twice.
func (k *worker) keep(ctx context.Context, o leasehold.LockOptions, acquire func() (*leasehold.Lease, error)) {
	lease, err := acquire()
	if err != nil {
		k.note(note{kind: refused, err: err})
		return
	}
	c := k.grant(lease, o)
	if k.w.switches.Passing {
		c = k.grant(lease, o)
	}
	for range 1 + k.rng.IntN(3) {
		k.hold(c, lease.Context(), k.upTo(o.TTL))
		if k.rng.IntN(2) == 0 {
			err := lease.Extend(ctx)
			k.note(note{kind: extended, claim: c, err: err})
		}
	}
	k.release(c, ctx)
	if k.rng.IntN(4) == 0 {
		k.release(c, ctx)
	}
}

func (k *worker) release(c *claim, ctx context.Context) {
	k.note(note{kind: releasing, claim: c})
	err := c.lease.Release(ctx)
	k.note(note{kind: released, claim: c, err: err})
}

// do holds a lease within a function, and checks what Do makes of its end.
func (k *worker) do(ctx context.Context, l *leasehold.Lock, o leasehold.LockOptions) {
	var c *claim
	var lost error // the loss that fn has seen
	err := l.Do(ctx, func(ctx context.Context, lease *leasehold.Lease) error {
		c = k.grant(lease, o)
		d := k.upTo(o.TTL)
		if k.rng.IntN(4) == 0 {
			d = k.upTo(3 * o.TTL)
		}
		k.hold(c, ctx, d)
		if k.rng.IntN(4) == 0 && (c.kind().IsMutex() || c.kind().Shared) { // the same lock again, by what the context carries
			err := l.Do(ctx, func(ctx context.Context, inner *leasehold.Lease) error {
				if inner.Token() != lease.Token() {
					k.note(note{kind: wrong, claim: c, text: "re-entry gave another token"})
				}
				k.hold(c, ctx, k.upTo(o.TTL/4))
				return nil
			})
			if err != nil && lease.Err() == nil && ctx.Err() == nil {
				k.note(note{kind: wrong, claim: c, text: "re-entry failed under a valid lease: " + class(err)})
			}
		}
		k.note(note{kind: releasing, claim: c})
		lost = lease.Err()
		return nil
	})
	if c == nil {
		k.note(note{kind: refused, err: err})
		return
	}
	if lost != nil && !errors.Is(err, leasehold.ErrLost) {
		k.note(note{kind: wrong, claim: c, text: "Do did not say that the lease was lost, but: " + class(err)})
	}
	k.note(note{kind: released, claim: c, err: err})
}

// hold works under a lease for d, or until ctx ends. Some workers ignore ctx. All of them
// check their lease before they write to the resource.
func (k *worker) hold(c *claim, ctx context.Context, d time.Duration) {
	ended := ctx
	if k.rng.IntN(4) == 0 {
		ended = k.c.ctx
	}
	end := k.w.timerNow() + d
	for ended.Err() == nil {
		rest := end - k.w.timerNow()
		if rest <= 0 {
			return
		}
		k.sleep(ended, min(rest, k.upTo(c.ttl)))
		if c.lease.Err() == nil {
			k.note(note{kind: wrote, claim: c})
		}
	}
}

// steady is one round that lasts until the end.
func (k *worker) steady() {
	o := leasehold.LockOptions{Require: k.requires(), TTL: k.w.script.longest(), Purpose: "steady"}
	k.does("holds on")
	l := k.one(0).With(o)
	k.begins(0, o)
	var c *claim
	err := l.Do(k.c.ctx, func(ctx context.Context, lease *leasehold.Lease) error {
		c = k.grant(lease, o)
		c.last = true // nothing is wrong that it does not have to bear
		k.hold(c, ctx, prologue+k.w.script.span()-k.w.timerNow())
		k.note(note{kind: releasing, claim: c})
		return lease.Err()
	})
	if c == nil {
		k.note(note{kind: refused, err: err, text: "last"})
		return
	}
	k.note(note{kind: released, claim: c, err: err})
}

// lastRound follows all faults: every worker gets the lock, keeps it as long as it wants,
// and releases it.
func (k *worker) lastRound() {
	i, l, o := k.lock()
	o.TTL = k.w.script.longest()
	d := k.upTo(time.Second)
	if k.index == 1 && k.c.index == 0 {
		d = o.TTL + o.TTL/4 // long enough to need renewals
	}
	k.does("wants the lock once more")
	k.begins(i, o)
	var c *claim
	err := l.With(o).Do(k.c.ctx, func(ctx context.Context, lease *leasehold.Lease) error {
		c = k.grant(lease, o)
		c.last = true
		k.hold(c, ctx, d)
		k.note(note{kind: releasing, claim: c})
		return lease.Err()
	})
	if c == nil {
		k.note(note{kind: refused, err: err, text: "last"})
		return
	}
	k.note(note{kind: released, claim: c, err: err})
}

// begins notes that the worker asks for a lock from now on. Unless it tries now and
// then, it waits in the queue for it.
func (k *worker) begins(lock int, o leasehold.LockOptions) {
	if o.Tries > 0 {
		lock = -1
	}
	k.note(note{kind: begins, lock: lock, weight: k.weight})
}

func (k *worker) note(n note) {
	n.by, n.at = k, k.w.timerNow()
	k.w.mu.Lock()
	k.notes = append(k.notes, n)
	k.w.mu.Unlock()
	k.w.wake()
}

// grant notes a new lease, and has the driver look when it ends.
func (k *worker) grant(l *leasehold.Lease, o leasehold.LockOptions) *claim {
	c := &claim{k: k, lock: lockIndex(l.Name()), weight: k.weight, lease: l, ttl: o.TTL, notice: o.TTL / 20, minHold: o.MinHold, maxHold: o.MaxHold}
	k.note(note{kind: granted, claim: c})
	go func() {
		<-l.Done()
		k.w.wake()
	}()
	return c
}
