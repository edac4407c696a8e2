package leasehold

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/leasefsm"
	"github.com/leasehold-dev/leasehold/internal/renewer"
	"github.com/leasehold-dev/leasehold/internal/waitq"
	"github.com/leasehold-dev/leasehold/store"
)

// Client asks one store for locks and renews the leases it is granted. It is safe
// for concurrent use; make one per store and share it. A Client has no Close: it
// runs goroutines only while leases are held or waited for, a fixed few however
// many leases there are. The store stays the caller's to close, after the leases
// are released.
type Client struct {
	store store.Store
	clock clock.Clock
	log   *slog.Logger
	host  string
	pid   int
	logs  bool // to a Logger of the user's

	mu      sync.Mutex // guards what follows, and everything about holds and queues
	renewer renewer.Renewer[*hold]
	queues  queues

	notify notifier

	waiter   store.Waiter   // store, when it keeps a line; otherwise nil
	rejoiner store.Rejoiner // store, when releasing and rejoining in one step pays
	cohort   waitq.Cohort
	delay    func(try int) time.Duration
	observe  func(context.Context, Event)

	described atomic.Pointer[description]
}

// New returns a Client of s. It sends nothing. A nil o means the defaults.
func New(s store.Store, o *Options) *Client {
	c := &Client{store: s, clock: clock.System(), log: slog.New(slog.DiscardHandler), pid: os.Getpid(), cohort: defaultCohort.bounds(), delay: defaultRetryDelay}
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
		c.cohort = o.Cohort.bounds()
	}
	c.observe = o.Observer
	c.notify.c = c
	c.mu.Lock() // on a slow machine a timer may fire before it is stopped
	defer c.mu.Unlock()
	c.renewer.Init(renewals{c})
	c.queues.known = make(map[terms]*queue)
	c.queues.reservations.init(c)
	return c
}

// Mutex returns the lock of that name, which one holder at a time can have. It
// sends nothing; an invalid name is reported when the lock is acquired.
func (c *Client) Mutex(name string) *Lock { return &Lock{c: c, name: name} }

// description is what a client last said of itself. It is the same for all
// attempts within a second.
type description struct {
	purpose string
	spare   int
	since   int64
	text    string
}

// describe returns the description of an attempt: this process, the purpose, and the
// number of tokens to reserve.
func (c *Client) describe(purpose string, spare int) string {
	now := time.Now()
	if d := c.described.Load(); d != nil && d.since == now.Unix() && d.purpose == purpose && d.spare == spare {
		return d.text
	}
	text := store.Holder{Host: c.host, PID: c.pid, Purpose: purpose, Since: now, Spare: spare}.Encode()
	c.described.Store(&description{purpose: purpose, spare: spare, since: now.Unix(), text: text})
	return text
}

// errClock is what the store said last of leases that a Clock has ended.
var errClock = errors.New("the Clock of the client failed")

// lock locks the mutex and reads the clock. A section that needs the time gets it
// here and reads the clock no more, since the Clock is the user's: if it does not
// return, nothing is half done. Nobody can judge any lease then, so all are lost.
func (c *Client) lock() (now clock.Instant) {
	c.mu.Lock()
	read := false
	defer func() {
		if !read {
			c.loseAllLocked()
			c.mu.Unlock()
		}
	}()
	now = c.clock.Now()
	read = true
	return now
}

// loseAllLocked ends every lease.
func (c *Client) loseAllLocked() {
	for h, ok := c.renewer.First(); ok; h, ok = c.renewer.First() {
		h.lastErr = errClock
		h.stepLocked(leasefsm.Tick, 0, math.MaxInt64)
	}
	c.renewer.Disarm()
}
