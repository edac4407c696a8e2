package leasehold

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/leasefsm"
	"github.com/leasehold-dev/leasehold/internal/validity"
	"github.com/leasehold-dev/leasehold/store"
)

// DefaultTTL is the TTL of a lock that names none.
const DefaultTTL = 30 * time.Second

// Options configure a Client. The zero value, and nil, are good defaults.
type Options struct {
	// Logger is told of renewals that fail, leases that are lost and clean-up
	// that did not succeed. Nil: nothing is logged. No secrets are logged.
	Logger *slog.Logger
	// Clock counts validity. Nil: the machine's own, which on Linux counts
	// while the machine is suspended. It is there for simulations and tests.
	Clock Clock
	// RetryDelay is the pause after the try-th attempt of what the client does again
	// by itself, and of locks that name none; see LockOptions.RetryDelay. Nil:
	// Backoff(10*time.Millisecond, 250*time.Millisecond).
	RetryDelay func(try int) time.Duration
	// Cohort bounds how often a lease is passed on inside the process while
	// others wait elsewhere. Nil: 64 times, for 100 ms. &Cohort{}: never. It is
	// passed on among goroutines that want the same (see Lock.Acquire), so not
	// from one LockOptions.Purpose to another. Stores that keep no line (see
	// store.Waiter) do not pass on either.
	Cohort *Cohort
	// Observer is told of every event, with the context that Acquire, Try or Do
	// was called with, for metrics and traces. It is called on the goroutine the
	// event concerns, for Lost on whichever found it out; from many at once,
	// never under a lock of the package's own, so that it may use the Client.
	// It holds up who calls it, so it should not block. Events of one lease come
	// in order, but for Lost and Released when both happen at once. Nil costs
	// nothing.
	Observer func(ctx context.Context, e Event)
}

// Clock tells how much time has passed; see Options.Clock. Its one method is
// Now() Instant; it is safe for concurrent use, never goes back, and does not block.
type Clock = clock.Clock

// Instant is a moment on a Clock, in nanoseconds since that clock's own epoch,
// which is to lie in its past: the zero Instant means "never". It is there for
// those who write a Clock, for a store's options as well.
type Instant = clock.Instant

// LockOptions say how a lock is asked for and kept. Each zero value is the
// default that its line names.
type LockOptions struct {
	// TTL is how long the store keeps the lock when its holder dies. Default
	// DefaultTTL. It is no limit on the work (renewal extends it) nor on the
	// wait (the context does). It must leave some validity: more than 1 % of
	// itself + 2 ms.
	TTL time.Duration
	// RenewEvery is the time between renewals, which may be sent a little early
	// (3 %) so that many go together. Default TTL/3.
	RenewEvery time.Duration
	// NoRenew switches renewal off: the lease ends after its TTL, unless
	// Extend is called.
	NoRenew bool
	// Notice is how long before the end of validity the holder is told that
	// the lease is lost, so that it has stopped when validity ends. Default
	// TTL/20.
	Notice time.Duration
	// MaxHold bounds the whole hold: after it the lease is lost, however
	// healthy. Default: no bound.
	MaxHold time.Duration
	// MinHold is the least time the lock stays taken, counted from the attempt
	// that got it: Release waits out the rest. For jobs started by many
	// machines' clocks at "the same" time, where a quick run on one machine
	// must still exclude a late start on another. Default 0.
	MinHold time.Duration
	// Purpose is shown to whoever asks who has the lock. Goroutines share a place
	// in the line, and a lease, only with those of the same purpose, of which the
	// others are told: twenty that wait with a purpose each are twenty in line. So
	// it had better say what the program does than for whom.
	Purpose string
	// Owner fixes the owner value, for a holder that another process must be
	// able to name. Default: 20 random bytes made anew for every attempt,
	// which is what safety rests on. A fixed owner therefore goes with one
	// attempt only (Try, or Tries: 1), and never twice with the same value
	// unless the first lease is known to be over or both are to be the same
	// holder. Two leases with one fixed owner are one to the store: both are
	// granted, with the same token, and nobody counts them. The first Release
	// ends both: the lock is free then, and the other lease is lost, which its
	// holder is told no sooner than its next renewal, and somebody else may have
	// the lock meanwhile. An attempt that fails leaves the other's lease alone, on
	// Redis also a release that comes late. Stored without a description of the holder.
	Owner string
	// Tries bounds the attempts of Acquire and Do. Default 0: until the
	// context ends. Who bounds them stands in no line: while others do, the
	// lock is free for it by chance only.
	Tries int
	// RetryDelay is the pause after the try-th attempt, from 1. It is cut
	// short when the holder's lease ends earlier. A release of unknown outcome
	// is tried again after such pauses too, of half a second at most. Default
	// Options.RetryDelay.
	RetryDelay func(try int) time.Duration
	// Require is the least that the store has to promise. A store that gives
	// less refuses the lock with ErrUnsupported, before anything is sent; one
	// Redis server then keeps quarantine after a restart. Default
	// store.Efficiency: what the store gives by itself.
	Require store.Class
	// Barge gives up the place in the order: who waits is only told that the lock
	// is free, and comes for it; whoever asks first has it. So a process that is
	// running may take the lock again and again without handing it over, and who
	// waits may do so for long. Do not expect it to be faster: in all that was
	// measured (docs/performance.md) it is slower than being handed the lock.
	// Goroutines of one Client are served in order all the same. Stores that keep
	// no line have no order.
	Barge bool
	// OnWait is called with the reason, a *BusyError or a *QuorumError, when a
	// wait begins and when there is news of it; where the store keeps no line,
	// before each pause. It runs on the waiting goroutine and must not block.
	// Where this process has the lock itself, or waits for it already, the
	// position counts its other goroutines, too. When there is news depends on the
	// store: that of another holder or position comes at once in memory, within a
	// second or so from a database, and from Redis when the place in line is
	// refreshed, three times per TTL. Nothing is asked besides for who listens.
	OnWait func(reason error)
}

// Backoff returns delays that double from least to most, each drawn at random
// from the upper half of its size, so that waiters do not move in step.
func Backoff(least, most time.Duration) func(try int) time.Duration {
	return func(try int) time.Duration {
		d := most
		if shift := max(try-1, 0); shift < 30 && least<<shift < most {
			d = least << shift
		}
		return d/2 + rand.N(d/2+1)
	}
}

var defaultRetryDelay = Backoff(10*time.Millisecond, 250*time.Millisecond)

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
	set(&o.Tries, over.Tries)
	set(&o.Require, over.Require)
	set(&o.Barge, over.Barge)
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

// life fills in the defaults and says what is wrong, before anything is sent.
func (o LockOptions) life() (leasefsm.Config, error) {
	for _, d := range []struct {
		name string
		v    time.Duration
	}{{"TTL", o.TTL}, {"RenewEvery", o.RenewEvery}, {"Notice", o.Notice}, {"MaxHold", o.MaxHold}, {"MinHold", o.MinHold}} {
		if d.v < 0 {
			return leasefsm.Config{}, invalid("%s is %v: it can not be negative", d.name, d.v)
		}
	}
	if o.Tries < 0 {
		return leasefsm.Config{}, invalid("Tries is %d: it can not be negative", o.Tries)
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
	c.Renew = orElse(c.Renew, c.TTL/3)
	c.Notice = orElse(c.Notice, min(c.TTL/20, valid/2))
	if o.NoRenew || !renewing {
		c.Renew = 0
	}
	switch {
	case c.Notice >= valid:
		return c, invalid("Notice %v does not fit into the validity of %v that a TTL of %v gives", c.Notice, valid, c.TTL)
	case c.Renew >= valid-c.Notice:
		return c, invalid("RenewEvery %v is too long: the holder of a lease of TTL %v is told after %v that it is lost", c.Renew, c.TTL, valid-c.Notice)
	case c.MaxHold > 0 && c.MaxHold <= c.Notice:
		return c, invalid("MaxHold %v is not longer than Notice %v", c.MaxHold, c.Notice)
	case c.MaxHold > 0 && o.MinHold > c.MaxHold:
		return c, invalid("MinHold %v is longer than MaxHold %v", o.MinHold, c.MaxHold)
	case o.NoRenew && o.MinHold > valid:
		return c, invalid("MinHold %v is longer than the validity of %v, and NoRenew is set", o.MinHold, valid)
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
