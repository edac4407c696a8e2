package leasehold

import (
	"context"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/leasefsm"
	"github.com/leasehold-dev/leasehold/store"
)

// Client asks one store for locks and keeps the leases it is granted. It is
// safe for concurrent use; make one and share it. It has no Close: it runs
// goroutines only while leases are renewed (a fixed few, however many leases),
// and the store belongs to whoever opened it.
type Client struct {
	store store.Store
	clock clock.Clock
	log   *slog.Logger
	host  string
	pid   int
	keep  keeper

	waiter   store.Waiter   // store, when it keeps a line; otherwise nil
	returner store.Returner // and when it also takes a place with a release
	cohort   Cohort
	delay    func(try int) time.Duration
	observe  func(context.Context, Event)

	described atomic.Pointer[description]
}

// description is what a client last said of itself. It is the same for all
// attempts within a second.
type description struct {
	purpose string
	spare   int
	since   int64
	text    string
}

// describe says who asks for a lock, what for, and how many tokens it reserves.
func (c *Client) describe(purpose string, spare int) string {
	now := time.Now()
	if d := c.described.Load(); d != nil && d.since == now.Unix() && d.purpose == purpose && d.spare == spare {
		return d.text
	}
	text := store.Holder{Host: c.host, PID: c.pid, Purpose: purpose, Since: now, Spare: spare}.Encode()
	c.described.Store(&description{purpose: purpose, spare: spare, since: now.Unix(), text: text})
	return text
}

// New returns a Client of s. A nil o means the defaults.
func New(s store.Store, o *Options) *Client {
	c := &Client{store: s, clock: clock.System(), log: slog.New(slog.DiscardHandler), pid: os.Getpid(), cohort: defaultCohort, delay: defaultRetryDelay}
	c.host, _ = os.Hostname() // shown to people only; empty where unknown
	c.waiter, _ = s.(store.Waiter)
	if r, ok := s.(store.Returner); ok && s.Caps().Nodes > 1 { // one server hands on the sooner, the less it has to do besides
		c.returner = r
	}
	if o == nil {
		o = &Options{}
	}
	if o.Logger != nil {
		c.log = o.Logger
	}
	if o.Clock != nil {
		c.clock = o.Clock
	}
	if o.RetryDelay != nil {
		c.delay = o.RetryDelay
	}
	if o.Cohort != nil {
		c.cohort = *o.Cohort
	}
	c.observe = o.Observer
	c.keep.init(c)
	return c
}

// Mutex returns the lock of that name, which one holder at a time can have.
// Nothing is sent; a bad name is reported when the lock is asked for.
func (c *Client) Mutex(name string) *Lock { return &Lock{c: c, name: name} }

// Lock is a recipe: a name, a kind and options. It is immutable, cheap and
// safe for concurrent use; every time it is locked it gives a new Lease.
type Lock struct {
	c    *Client
	name string
	o    LockOptions
}

// delay is the pause after the try-th attempt.
func (l *Lock) delay() func(try int) time.Duration {
	if l.o.RetryDelay != nil {
		return l.o.RetryDelay
	}
	return l.c.delay
}

// Name of the lock.
func (l *Lock) Name() string { return l.name }

// With returns a copy of l with those options changed that are set in o.
func (l *Lock) With(o LockOptions) *Lock {
	return &Lock{c: l.c, name: l.name, o: l.o.merge(o)}
}

// Acquire waits for the lock until ctx ends (or LockOptions.Tries attempts are
// used up) and returns a lease of it, which lives on when ctx ends. Release it.
//
// Goroutines of one Client that want the same (name, life, Require, Barge and
// Purpose) queue, and are served in the order they came; their process has one
// place in the store's line, however many they are, and may pass a lease on among
// them: see Options.Cohort. A store that keeps no line is asked again and again.
//
// When ctx ends first the error matches ctx.Err(), and ErrBusy too if somebody
// held the lock; nothing is left in the store (the clean-up may still be under
// way, in the background). If what is known of the holder is old by then the store
// is asked once more, for a second at most. While nodes are merely unreachable it goes on trying
// for as long as one TTL, and while they are in quarantine for as long as that
// lasts; what waiting can not mend is returned at once.
//
// A ctx made by Do, or by Lease.Context, carries its lease: acquiring the same
// lock of the same Client with it re-enters at once, without asking the store.
// The lock stays held until every lease so obtained is released.
func (l *Lock) Acquire(ctx context.Context) (*Lease, error) {
	return l.wait(ctx, l.o.Tries, false)
}

// Try makes one attempt and does not wait for the lock to become free: it
// blocks for the store's answer only. Otherwise it is like Acquire.
func (l *Lock) Try(ctx context.Context) (*Lease, error) {
	return l.wait(ctx, 1, false)
}

// attempt asks the store once, for itself or for those in q as well.
func (l *Lock) attempt(ctx context.Context, life leasefsm.Config, bound bool, q *queue) (*Lease, error) {
	req := store.Request{Name: l.name, Owner: l.o.Owner, TTL: life.TTL, Require: l.o.Require}
	switch {
	case q != nil:
		req = q.request(0)
		req.Owner = store.NewOwner()
	case req.Owner == "":
		req.Owner = store.NewOwner()
		req.Meta = l.c.describe(l.o.Purpose, req.Spare)
	}
	fsm := leasefsm.New(life)
	start := l.c.clock.Now() // before the first byte leaves: validity counts from here
	grant, err := l.c.store.Acquire(ctx, req)
	if err != nil {
		return nil, err
	}
	now := l.c.clock.Now()
	fsm = fsm.Step(leasefsm.Granted, start, now)
	h := l.c.newHold(req, grant, fsm)
	if !fsm.Live() {
		return nil, h.late(ctx, now.Sub(start))
	}
	k := &l.c.keep
	k.mu.Lock()
	defer k.unlock()
	lease := k.begin(h, start, l, ctx, bound)
	if q != nil {
		q.attach(h, now)
	}
	return lease, nil
}

func (c *Client) newHold(req store.Request, grant store.Grant, fsm leasefsm.Lease) *hold {
	if grant.Owner != "" {
		req.Owner = grant.Owner
	}
	h := &hold{c: c, req: req, token: grant.Token, delay: c.delay, fsm: fsm, at: -1}
	h.renewed.Store(grant.Repeated)
	return h
}

// late gives back what was granted too late to be of use.
func (h *hold) late(ctx context.Context, took time.Duration) error {
	err := h.giveBack(ctx)
	return &LostError{Name: h.req.Name, Reason: "the grant took " + store.Round(took).String() + " to arrive, and its validity was over", Err: err}
}
