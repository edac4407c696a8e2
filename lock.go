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

// Client asks one store for locks and renews the leases it is granted. It is safe
// for concurrent use; make one per store and share it. A Client has no Close: it
// runs goroutines only while leases are held or waited for, a fixed few however
// many leases there are. The store stays the caller's to close, after the leases
// are released.
type Client struct {
	store   store.Store
	clock   clock.Clock
	log     *slog.Logger
	host    string
	pid     int
	logs    bool // to a Logger of the user's
	renewer renewer

	notify notifier

	waiter   store.Waiter   // store, when it keeps a line; otherwise nil
	rejoiner store.Rejoiner // store, when releasing and rejoining in one step pays
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

// New returns a Client of s. It sends nothing. A nil o means the defaults.
func New(s store.Store, o *Options) *Client {
	c := &Client{store: s, clock: clock.System(), log: slog.New(slog.DiscardHandler), pid: os.Getpid(), cohort: defaultCohort, delay: defaultRetryDelay}
	c.host, _ = os.Hostname() // shown to people only; empty where unknown
	c.waiter, _ = s.(store.Waiter)
	if r, ok := s.(store.Rejoiner); ok && s.Caps().Rejoins {
		c.rejoiner = r
	}
	if o == nil {
		o = &Options{}
	}
	if o.Logger != nil {
		c.log, c.logs = o.Logger, true
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
	c.notify.c = c
	c.renewer.init(c)
	return c
}

// Mutex returns the lock of that name, which one holder at a time can have. It
// sends nothing; an invalid name is reported when the lock is acquired.
func (c *Client) Mutex(name string) *Lock { return &Lock{c: c, name: name} }

// Lock is a recipe for leases: a name, a kind and options. It is immutable, cheap
// to make and safe for concurrent use.
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

// Name returns the name of the lock.
func (l *Lock) Name() string { return l.name }

// With returns a copy of l in which the fields set in o replace those of l. A zero
// field of o changes nothing.
func (l *Lock) With(o LockOptions) *Lock {
	return &Lock{c: l.c, name: l.name, o: l.o.merge(o)}
}

// Acquire blocks until it has the lock, and returns a lease of it, which outlives
// ctx. The caller must release it.
//
// It waits until ctx ends or LockOptions.Tries attempts have failed. If ctx ends
// first, the error matches ctx.Err(), and ErrBusy if the lock was held. Nothing
// stays in the store then, though the clean-up may go on in the background. If what
// is known of the holder is old by then, the store is asked for it once more, for a
// second at most.
//
// While nodes cannot be reached, Acquire goes on trying for one TTL; while they are
// in quarantine, for as long as that lasts. It returns at once with an error that
// matches ErrInvalid, ErrUnsupported, ErrKindMismatch, ErrQuorum (nodes refuse) or
// the engine's own, since waiting cannot help.
//
// Waiters form a FIFO queue. Goroutines of one Client that want the same (name,
// TTL and other durations, Require, Barge and Purpose) share one place in the
// store's line, and may pass a lease on among themselves: see Options.Cohort. A
// store that keeps no line is asked again after each RetryDelay.
//
// A context made by Do or Lease.Context carries its lease. Acquiring the same lock
// of the same Client with it re-enters that lease at once, without asking the
// store. The lock stays held until every lease so obtained is released. Re-entry
// fails with ErrUnsupported if LockOptions.Require is more than the lease was
// acquired with; the other options of the first lease stay in force.
func (l *Lock) Acquire(ctx context.Context) (*Lease, error) {
	return l.wait(ctx, l.o.Tries, false)
}

// Try makes one attempt. It blocks for the store's answer, but does not wait for
// the lock to become free: the error then matches ErrBusy. Otherwise it is like
// Acquire.
func (l *Lock) Try(ctx context.Context) (*Lease, error) {
	return l.wait(ctx, 1, false)
}

// attempt asks the store once, for itself or for those in q as well.
func (l *Lock) attempt(ctx context.Context, life leasefsm.Config, bound bool, q *queue) (*Lease, error) {
	req := store.AcquireRequest{Lease: store.Lease{Name: l.name, Owner: l.o.Owner, TTL: life.TTL, Require: l.o.Require}}
	if req.Owner != "" {
		req.Attempt = store.NewOwner()
	}
	switch {
	case q != nil:
		r := q.request(0)
		req = store.AcquireRequest{Lease: r.Lease, Spare: r.Spare}
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
	if grant.Owner != "" {
		req.Owner = grant.Owner
	}
	settled := false
	defer func() {
		if !settled {
			l.c.drop(ctx, store.ReleaseRequest{Lease: req.Lease, Undo: true})
		}
	}()
	rn := &l.c.renewer
	now := rn.lock()
	settled = true
	fsm = fsm.Step(leasefsm.Granted, start, now)
	h := l.c.newHold(req.Lease, grant, fsm)
	if !fsm.Live() {
		rn.mu.Unlock()
		return nil, h.late(ctx, now.Sub(start))
	}
	defer rn.mu.Unlock()
	lease := rn.startLocked(h, start, now, l, ctx, bound)
	if q != nil {
		q.attachLocked(h, now)
	}
	return lease, nil
}

func (c *Client) newHold(req store.Lease, grant store.Grant, fsm leasefsm.Lease) *hold {
	h := &hold{c: c, req: req, token: grant.Token, spare: grant.Spare, delay: c.delay, fsm: fsm, at: -1}
	h.renewed.Store(grant.Repeated)
	return h
}

// late releases what was granted too late to be of use.
func (h *hold) late(ctx context.Context, took time.Duration) error {
	err := h.release(ctx, true)
	return &LostError{Name: h.req.Name, Cause: LostLateGrant, Reason: "the grant took " + store.Round(took).String() + " to arrive, and its validity was over", Err: err}
}
