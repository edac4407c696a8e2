package holds

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/callback"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/leasefsm"
	"github.com/leasehold-dev/leasehold/internal/renewer"
	"github.com/leasehold-dev/leasehold/store"
)

// ErrLost and ErrReleased are those of package leasehold.
var (
	ErrLost     = errors.New("lease lost")
	ErrReleased = errors.New("lease was released")
)

// Config is what a client is made of.
type Config struct {
	Store *store.Store
	Clock clock.Clock
	// RetryDelay returns the pause after the try-th request that the client repeats by itself.
	RetryDelay func(try int) time.Duration
	// Log receives what the user should know. Nil: only panics of the user's functions are logged.
	Log *slog.Logger
	// Observe is told what becomes of a lease, on any goroutine, but never while a mutex is held.
	// Nil: nobody is told.
	Observe func(ctx context.Context, l *Lease, what Change, held time.Duration, err error)
	// LostError makes an error of a loss. The error matches ErrLost.
	LostError func(Loss) error
}

// Change is what Config.Observe is told.
type Change uint8

// The changes.
const (
	Lost          Change = iota // before it was released
	Released                    // the last lease of its grant
	RenewalFailed               // and the lease is valid still
)

// Loss says how a lease was lost.
type Loss struct {
	Name   string
	Cause  leasefsm.Cause
	Late   bool // it was granted so late that nobody ever had it
	Reason string
	Err    error         // the last answer of the store, or nil
	Broken *store.Broken // who broke it, if that is known
}

// Holds are the grants of a client, with their deadlines. They are safe for concurrent use.
type Holds struct {
	Config
	// Guard runs the user's functions on goroutines of the client.
	Guard callback.Guard

	logs    bool // to a logger of the user's
	notify  callback.Notifier
	mu      sync.Mutex // guards all grants
	renewer renewer.Renewer[*hold]
	hints   hints
}

// New returns the holds of a client, which has none yet.
func New(o Config) *Holds {
	c := &Holds{Config: o, Guard: callback.Guard{Log: o.Log}, logs: o.Log != nil}
	if !c.logs {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.notify.Guard = c.Guard
	c.mu.Lock() // on a slow machine the timer may fire before it is stopped
	defer c.mu.Unlock()
	c.renewer.Init(renewals{c})
	if breaksPushed && o.Store.Caps().Notifies {
		c.listen()
	}
	return c
}

// lock locks the mutex and reads the clock.
func (c *Holds) lock() (now clock.Instant) {
	c.mu.Lock()
	return c.Clock.Now()
}

// drop tries once to release what r was granted, and logs a failure.
func (c *Holds) drop(ctx context.Context, r store.ReleaseRequest) {
	ctx, cancel := clock.Bound(ctx, min(max(r.TTL, time.Second), 5*time.Second))
	defer cancel()
	if err := c.Store.Release(ctx, r); err != nil && !errors.Is(err, store.ErrNotHeld) {
		c.logUnknown(r.Name, err)
	}
}

// logUnknown logs that it is not known whether the lock was released.
func (c *Holds) logUnknown(name string, err error) {
	c.Log.Warn("release: outcome unknown, the lock ends by its TTL", "lock", name, "err", err)
}

// logLater logs from a goroutine of the package, for callers that hold the mutex.
func (c *Holds) logLater(level slog.Level, msg string, args ...any) {
	if c.logs {
		c.notify.Add(func() { c.Log.Log(context.Background(), level, msg, args...) })
	}
}
