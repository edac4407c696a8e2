package leasehold

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold/clock"
	"github.com/leasehold-dev/leasehold/internal/leasefsm"
	"github.com/leasehold-dev/leasehold/internal/validity"
	"github.com/leasehold-dev/leasehold/store"
)

// DefaultTTL is the TTL of a lock whose options set none.
const DefaultTTL = 30 * time.Second

// Options configure a Client. The zero value and nil mean the defaults. A Client
// copies them.
type Options struct {
	// Logger receives renewals that fail, leases that are lost, clean-up that
	// failed, and panics of the caller's functions on a goroutine of the package.
	// No secrets are logged. Nil: only such panics are logged, to slog.Default.
	Logger *slog.Logger
	// Clock counts validity; it is meant for simulations and tests. Nil: the
	// machine's own, which on Linux counts while the machine is suspended. It must not
	// block, panic or end its goroutine.
	Clock clock.Clock
	// RetryDelay returns the pause after the try-th attempt, counted from 1. It is
	// used for requests that the Client repeats by itself, and for locks whose
	// options set no LockOptions.RetryDelay. It must be safe for concurrent use and
	// must not block. Nil: Backoff(10*time.Millisecond, 250*time.Millisecond).
	RetryDelay func(try int) time.Duration
	// Observer is called with every event, for metrics and traces, and with the
	// context that Acquire, Try, Do or Downgrade was called with. It is called on the
	// goroutine that the event concerns; for RenewalFailed, Lost, and a Released that
	// follows closely, on a goroutine of the package. It is called from many goroutines at
	// once and never while a mutex is held, so it may use the Client and release
	// leases. The goroutine that it is called on waits for it, so it should not
	// block. Events of one lease come in order. If Observer ends the goroutine that
	// has just been granted a lock, by a panic or runtime.Goexit, the lock is
	// released. Nil: no events are made, which costs nothing.
	Observer func(ctx context.Context, e Event)
	// Trace returns the trace that ctx belongs to, in the form of Holder.Trace, or "". It
	// is called once for each Acquire, Try and Do, on their goroutine, with their context.
	// Another client that wants the lock finds the trace in the description of its
	// holder. Trace must be safe for concurrent use and must not block.
	//
	// The store keeps the trace of the goroutine that asked it. Where goroutines of a
	// Client share a place in the queue, that may be another one than the holder. A
	// description that has no room for a trace has none. Nil: no trace.
	Trace func(ctx context.Context) string
}

// LockOptions say how a lock is acquired and held. The zero value of each field
// means the default that its comment names. All durations must be 0 or more; Acquire
// returns an error matching ErrInvalid, and sends nothing, if one is negative or
// they do not fit together.
type LockOptions struct {
	// TTL is how long the store keeps the lock after its holder has died. It limits
	// neither the work, since renewal extends it, nor the wait, which the context
	// limits. It must leave some validity: more than 1 % of itself + 2 ms. Default
	// DefaultTTL.
	TTL time.Duration
	// RenewEvery is the time between renewals, of a millisecond at least. One may be sent
	// 3 % early, so that many go together. Default TTL/3, or half of the time after which
	// the holder would be notified of a loss if that is less.
	RenewEvery time.Duration
	// NoRenew turns renewal off: the lease ends after its TTL unless Extend is
	// called.
	NoRenew bool
	// Notice is how long before the end of validity the holder is notified that the
	// lease is lost, so that it has stopped when validity ends. Default TTL/20.
	Notice time.Duration
	// MaxHold bounds the whole hold: after it the lease is lost, even if renewals
	// succeed. Default: no bound.
	MaxHold time.Duration
	// MinHold is the least time that the lock stays taken, counted from when the grant
	// arrived: Release waits for the rest. It is for jobs that many machines start at
	// "the same" time by their clocks, where a short run on one machine must still
	// exclude a late start on another. It cannot be longer than MaxHold, nor, with
	// NoRenew, than the time after which the holder is notified of the loss. Default 0.
	MinHold time.Duration
	// Purpose is shown to users who want to know the holder. Goroutines share a place
	// in the queue and a lease only if their purpose is the same: twenty goroutines
	// with a purpose each take twenty places. So say what the program does rather
	// than for whom. Default: none.
	Purpose string
	// Owner fixes the owner value, for a holder that another process must be able to
	// name. It is stored without a description of the holder. Default: 20 random
	// bytes made anew for every attempt, on which safety rests.
	//
	// A fixed owner needs a single attempt (Try, or Tries: 1). Do not use a value
	// twice unless the first lease is known to be over, or both leases are meant to
	// be one holder: to the store they are. Both are granted with the same token,
	// and the first Release ends both. The other holder learns of the loss at its
	// next renewal, and another client may have the lock by then. An attempt that fails
	// leaves the other's lease alone, on Redis also if its release arrives late.
	Owner string
	// Weight is how many permits of a semaphore the lease takes. Locks of other kinds
	// refuse it. Default 1.
	Weight int
	// Tries bounds the attempts of Acquire and Do. With a bound they join no queue:
	// while others wait there, they are granted the lock by chance only. Default 0:
	// no bound.
	Tries int
	// RetryDelay returns the pause after the try-th attempt, from 1. It is cut short
	// if the holder's lease ends earlier. A release of unknown outcome is tried
	// again after such pauses too, of half a second at most. It must not block.
	// Default Options.RetryDelay.
	RetryDelay func(try int) time.Duration
	// Require is the least guarantee that the store has to give. A store that gives
	// less refuses the lock with ErrUnsupported, before anything is sent. With
	// store.CrashSafe, a single Redis server that has restarted stays in quarantine
	// and grants nothing for a while. Default store.Efficiency: what the store gives
	// by itself.
	Require store.Class
	// OnWait is called with the reason, a *BusyError or a *QuorumError, when a wait
	// begins and when there is news of it, even if the cause is the same; where the
	// store keeps no queue, before each pause. It runs on the waiting goroutine and
	// must not block: a lock that is granted meanwhile is held while it runs. If the
	// context ends meanwhile, the place in the queue is given up at once.
	//
	// If this process holds the lock or waits for it already, the position counts
	// its other goroutines too. The store decides how soon there is news of another
	// holder or position: memory reports it at once, a database within about a
	// second, and Redis when the place in the queue is refreshed, three times per
	// TTL. Nothing more is sent because of OnWait.
	OnWait func(reason error)
}

// Backoff returns a RetryDelay that doubles from least to most. Each delay is drawn
// at random from the upper half of its size, so that waiters do not move in step.
// The function is safe for concurrent use.
func Backoff(least, most time.Duration) func(try int) time.Duration {
	return func(try int) time.Duration {
		d := most
		if shift := max(try-1, 0); shift < 63 && least <= most>>shift {
			d = least << shift
		}
		return d/2 + rand.N(d/2+1)
	}
}

// merge returns o with the fields that are set in over.
func (o LockOptions) merge(over LockOptions) LockOptions {
	set(&o.TTL, over.TTL)
	set(&o.RenewEvery, over.RenewEvery)
	set(&o.NoRenew, over.NoRenew)
	set(&o.Notice, over.Notice)
	set(&o.MaxHold, over.MaxHold)
	set(&o.MinHold, over.MinHold)
	set(&o.Purpose, over.Purpose)
	set(&o.Owner, over.Owner)
	set(&o.Weight, over.Weight)
	set(&o.Tries, over.Tries)
	set(&o.Require, over.Require)
	if over.RetryDelay != nil {
		o.RetryDelay = over.RetryDelay
	}
	if over.OnWait != nil {
		o.OnWait = over.OnWait
	}
	return o
}

func set[T comparable](field *T, v T) {
	var zero T
	if v != zero {
		*field = v
	}
}

// leastRenewEvery is the least LockOptions.RenewEvery.
const leastRenewEvery = time.Millisecond

// life fills in the defaults and says what is wrong, before anything is sent.
func (o LockOptions) life() (leasefsm.Config, error) {
	for _, d := range []struct {
		name string
		v    time.Duration
	}{{"TTL", o.TTL}, {"RenewEvery", o.RenewEvery}, {"Notice", o.Notice}, {"MaxHold", o.MaxHold}, {"MinHold", o.MinHold}} {
		if d.v < 0 {
			return leasefsm.Config{}, invalid("%s is %v: it cannot be negative", d.name, d.v)
		}
	}
	if o.Tries < 0 {
		return leasefsm.Config{}, invalid("Tries is %d: it cannot be negative", o.Tries)
	}
	if o.Owner != "" {
		if err := store.CheckOwner(o.Owner); err != nil {
			return leasefsm.Config{}, err
		}
	}
	c := leasefsm.Config{TTL: o.TTL, Notice: o.Notice, Renew: o.RenewEvery, MaxHold: o.MaxHold}
	c.TTL = orElse(c.TTL, DefaultTTL)
	valid := c.TTL - validity.Drift(c.TTL)
	if valid <= 0 {
		return c, invalid("TTL %v leaves no validity after the drift allowance of %v: ask for at least 3ms", c.TTL, validity.Drift(c.TTL))
	}
	c.Notice = orElse(c.Notice, min(c.TTL/20, valid/2))
	c.Renew = orElse(c.Renew, min(validity.RenewAfter(c.TTL), (valid-c.Notice)/2))
	if o.NoRenew || !renewing {
		c.Renew = 0
	}
	switch {
	case o.RenewEvery > 0 && o.RenewEvery < leastRenewEvery:
		return c, invalid("RenewEvery is %v: the minimum is %v (a number without a unit counts nanoseconds)", o.RenewEvery, leastRenewEvery)
	case c.Notice >= valid:
		return c, invalid("Notice %v does not fit into the validity of %v that a TTL of %v gives", c.Notice, valid, c.TTL)
	case c.Renew >= valid-c.Notice:
		return c, invalid("RenewEvery %v is too long: the holder of a lease of TTL %v is notified of its loss after %v", c.Renew, c.TTL, valid-c.Notice)
	case c.MaxHold > 0 && c.MaxHold <= c.Notice:
		return c, invalid("MaxHold %v is not longer than Notice %v", c.MaxHold, c.Notice)
	case c.MaxHold > 0 && o.MinHold > c.MaxHold:
		return c, invalid("MinHold %v is longer than MaxHold %v", o.MinHold, c.MaxHold)
	case o.NoRenew && o.MinHold > valid-c.Notice:
		return c, invalid("MinHold %v is too long with NoRenew: the holder of a lease of TTL %v is notified of its loss after %v", o.MinHold, c.TTL, valid-c.Notice)
	}
	if !noticeGiven {
		c.Notice = 0
	}
	if !longestHold {
		c.MaxHold = 0
	}
	return c, nil
}

func orElse(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}
