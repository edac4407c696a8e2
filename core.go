package leasehold

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/callback"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// core is what all parts of a client share: the store, the clock, the mutex and the
// functions that the user supplied. It knows no lease and no queue.
type core struct {
	store   *store.Store
	waits   bool // the store keeps a queue
	rejoins bool // releasing and rejoining in one step pays

	clock   clock.Clock
	delay   func(try int) time.Duration
	observe func(context.Context, Event)
	trace   func(context.Context) string
	log     *slog.Logger
	logs    bool // to a Logger of the user's

	guard     callback.Guard // for the goroutines of the package
	notify    callback.Notifier
	describer describer

	mu                sync.Mutex // guards everything about holds
	clockFailedLocked func()     // ends every lease
}

// init uses s and what o supplies.
func (c *core) init(s *store.Store, o *Options) {
	c.store, c.clock, c.delay, c.observe, c.trace = s, clock.System(), defaultRetryDelay, o.Observer, o.Trace
	caps := s.Caps()
	c.waits, c.rejoins = !caps.NoQueue, caps.Rejoins
	if o.Clock != nil {
		c.clock = o.Clock
	}
	if o.RetryDelay != nil {
		c.delay = o.RetryDelay
	}
	c.log, c.logs = o.Logger, o.Logger != nil
	if !c.logs {
		c.log = slog.New(slog.DiscardHandler)
	}
	c.guard.Log = o.Logger
	c.notify.Guard = c.guard
	c.describer.init()
}

// lock locks the mutex and reads the clock. A section that needs the time gets it
// here and reads the clock no more, since the Clock is the user's: if it does not
// return, nothing is half done. Nobody can judge any lease then, so all are lost.
func (c *core) lock() (now clock.Instant) {
	c.mu.Lock()
	read := false
	defer func() {
		if !read {
			c.clockFailedLocked()
			c.mu.Unlock()
		}
	}()
	now = c.clock.Now()
	read = true
	return now
}

// now reads the clock for those that do not hold the mutex, and ends every lease if it fails.
func (c *core) now() (now clock.Instant) {
	read := false
	defer func() {
		if !read {
			c.mu.Lock()
			c.clockFailedLocked()
			c.mu.Unlock()
		}
	}()
	now = c.clock.Now()
	read = true
	return now
}

// drop tries once to release what r was granted, and logs a failure.
func (c *core) drop(ctx context.Context, r store.ReleaseRequest) {
	ctx, cancel := clock.Bound(ctx, min(max(r.TTL, time.Second), 5*time.Second))
	defer cancel()
	if err := c.store.Release(ctx, r); err != nil && !errors.Is(err, store.ErrNotHeld) {
		c.logUnknown(r.Name, err)
	}
}

// logUnknown logs that it is not known whether the lock was released.
func (c *core) logUnknown(name string, err error) {
	c.log.Warn("release: outcome unknown, the lock ends by its TTL", "lock", name, "err", err)
}

// logLater logs from a goroutine of the package, for callers that hold the mutex.
func (c *core) logLater(level slog.Level, msg string, args ...any) {
	if c.logs {
		c.notify.Add(func() { c.log.Log(context.Background(), level, msg, args...) })
	}
}

// mustHave panics if ctx is nil, as the functions of package context do: a
// program that passes none has to be changed, and finds out at the first call.
func mustHave(ctx context.Context) {
	if ctx == nil {
		panic("leasehold: nil Context")
	}
}
