package leasehold

import (
	"cmp"
	"context"
	"errors"

	"github.com/leasehold-dev/leasehold/internal/holds"
	"github.com/leasehold-dev/leasehold/internal/waits"
	"github.com/leasehold-dev/leasehold/store"
)

// Lock is a recipe for leases: a name, a kind and options. It is immutable, cheap
// to make and safe for concurrent use.
type Lock struct {
	c    *Client
	name string
	take claim // what a lease takes of it, unless the options say otherwise
	o    LockOptions
	// unrenewed is set if the lease is renewed for a while only, until it is held with others.
	unrenewed bool
}

// Mutex returns the lock of that name, which one holder at a time can have. It
// sends nothing; an invalid name is reported when the lock is acquired.
func (c *Client) Mutex(name string) *Lock { return &Lock{c: c, name: name} }

// Name returns the name of the lock.
func (l *Lock) Name() string { return l.name }

// With returns a copy of l in which the fields set in o replace those of l. A zero
// field of o changes nothing: WithFunc sets a field back.
func (l *Lock) With(o LockOptions) *Lock {
	return l.WithFunc(func(all *LockOptions) { *all = all.merge(o) })
}

// WithFunc returns a copy of l with the options that set leaves. It is called once, before
// WithFunc returns, with the options of l, and can also set one back to its default:
//
//	patient := lock.WithFunc(func(o *leasehold.LockOptions) { o.Tries, o.NoRenew = 0, false })
func (l *Lock) WithFunc(set func(o *LockOptions)) *Lock {
	with := *l
	set(&with.o)
	return &with
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
// TTL and other durations, Require and Purpose) share one place in the
// store's queue. The lock is then granted to the goroutine that has waited longest,
// with an owner and a token of its own. Goroutines that want a permit of a semaphore, or
// to read or write, have a place each. A store that keeps no queue is asked again after
// each RetryDelay.
//
// A context made by Do or Lease.Context carries its lease. Acquiring the same mutex or
// read-write lock of the same Client with it re-enters that lease at once, without asking
// the store. The lock stays held until every lease so obtained is released. Re-entry
// fails with ErrUnsupported if LockOptions.Require is more than the lease was
// acquired with; the other options of the first lease stay in force. A lease that is over
// is not re-entered: its context is then as one that carries none. Nor is a lease of a
// semaphore, whose permits are counted, and neither Client.Once nor Election.Run enters
// any. With another Owner than that of the lease, the lock is found to be held.
func (l *Lock) Acquire(ctx context.Context) (*Lease, error) {
	return l.wait(ctx, l.o.Tries, false)
}

// Try makes one attempt. It blocks for the store's answer, but does not wait for
// the lock to become free: the error then matches ErrBusy. Otherwise it is like
// Acquire.
func (l *Lock) Try(ctx context.Context) (*Lease, error) {
	return l.wait(ctx, 1, false)
}

// Do acquires the lock as Acquire does, calls fn while it is held, and releases
// it. It blocks for the wait, for fn, and for the release (see Lease.Release).
//
// The context given to fn ends when ctx does. It also ends, with cause ErrLost,
// when the lease is lost: LockOptions.Notice before another client can be granted
// the lock. fn must stop then. A resource that fn writes to should check l.Token.
//
// The error joins that of fn, the loss of the lease (even if fn returned nil) and
// that of the release. Do returns the errors of Acquire if fn was not called.
//
// If fn panics or calls runtime.Goexit, Do releases the lock on the way out, without
// waiting for LockOptions.MinHold: the lock ends by itself then, as when ctx has ended. fn may
// release the lease itself, and may lock the same lock again with its context: see
// Acquire. Locking it with another context waits for Do itself.
func (l *Lock) Do(ctx context.Context, fn func(ctx context.Context, l *Lease) error) error {
	lease, err := l.wait(ctx, l.o.Tries, true)
	if err != nil {
		return err
	}
	return l.during(ctx, lease, fn)
}

// wait asks for the lock until it is granted, tries are used up, ctx ends, or
// an error shows that waiting cannot help. With bound, what is derived from
// the lease's context ends with ctx.
func (l *Lock) wait(ctx context.Context, tries int, bound bool) (*Lease, error) {
	mustHave(ctx)
	call := l.c.begin(ctx)
	var held *holds.Lease
	answered, returned := false, false
	defer func() {
		switch {
		case !answered: // a function of the user's ends this goroutine
			l.observeOutcome(ctx, call, nil, 0, errEnded)
		case !returned && held != nil: // the Observer failed
			held.Discard()
		}
	}()
	held, how, err := l.get(ctx, tries, bound, call)
	answered = true
	l.observeOutcome(ctx, call, held, how, err)
	returned = true
	if err != nil {
		return nil, err
	}
	return &Lease{l.c, held}, nil
}

// errEnded is the error of Failed if the caller does not live to see any.
var errEnded = errors.New("a function given to the client ended the goroutine that waited for the lock")

// get asks for the lock, or re-enters the lease that ctx carries. It returns how the lease was
// obtained; 0 means by re-entry.
func (l *Lock) get(ctx context.Context, tries int, bound bool, call call) (*holds.Lease, EventKind, error) {
	t, err := l.terms()
	if err != nil {
		return nil, 0, err
	}
	if held, err := l.reenter(ctx, &t, bound); held != nil || err != nil {
		return held, 0, err
	}
	if l.o.Owner != "" && tries != 1 {
		return nil, 0, invalid("a fixed Owner needs a single attempt: use Try, or set Tries to 1")
	}
	by := waits.Caller{Bound: bound, MinHold: l.o.MinHold, RetryDelay: l.o.RetryDelay, Trace: call.trace, OnWait: l.o.OnWait}
	if by.RetryDelay == nil {
		by.RetryDelay = l.c.holds.RetryDelay
	}
	if l.c.observe != nil {
		by.OnCause = func(reason error, position int) { l.observeWaiting(ctx, call, reason, position) }
	}
	owner, how := l.o.Owner, Acquired
	if !ownerPerAttempt && owner == "" {
		owner = store.NewOwner()
	}
	if tries > 0 || owner != "" {
		held, err := l.c.queues.Poll(ctx, t, &by, tries, owner)
		return held, how, err
	}
	held, handed, err := l.c.queues.Acquire(ctx, t, &by)
	if handed {
		how = Handed
	}
	return held, how, err
}

// terms returns what l wants, or an error if l is invalid or its store never gives that. It sends
// nothing, and a request that the store would refuse does not wait for its turn behind other
// goroutines first.
func (l *Lock) terms() (waits.Terms, error) {
	life, err := l.o.life()
	if err != nil {
		return waits.Terms{}, err
	}
	want, err := l.take.weighing(l.name, l.o.Weight)
	if err != nil {
		return waits.Terms{}, err
	}
	asked := store.Lease{Name: l.name, Kind: want.kind, Weight: want.weight, TTL: life.TTL, Require: l.o.Require}
	caps := l.c.store.Caps()
	if err := cmp.Or(asked.CheckTerms(caps), asked.CheckClass(caps)); err != nil {
		return waits.Terms{}, err
	}
	if want.kind.IsMutex() { // a semaphore of one permit shares their queue
		want.kind, want.weight = store.Kind{}, 0
	}
	return waits.Terms{Name: l.name, Purpose: l.o.Purpose, Life: life, Require: l.o.Require, Unrenewed: l.unrenewed || life.Renew == 0, Kind: want.kind, Weight: want.weight}, nil
}

// reenter returns another lease of the grant that ctx carries a lease of, or nil if ctx carries
// none that is held and can be re-entered. It returns an error if t is something else than
// was granted.
func (l *Lock) reenter(ctx context.Context, t *waits.Terms, bound bool) (*holds.Lease, error) {
	if l.take.anew {
		return nil, nil
	}
	outer := l.c.holds.CarriedAndHeld(ctx, l.name)
	if outer == nil || l.o.Owner != "" && l.o.Owner != outer.Owner() {
		return nil, nil
	}
	if err := reenters(t, outer.Request()); err != nil {
		return nil, err
	}
	return outer.Reenter(ctx, bound), nil
}

// during calls fn with lease, and releases it.
func (l *Lock) during(ctx context.Context, lease *Lease, fn func(ctx context.Context, l *Lease) error) error {
	return l.c.during(ctx, l.name, lease.Release, func() error { return fn(lease.Context(), lease) })
}

// during calls fn, and then release, whatever becomes of fn. It joins their errors. A panic
// does not wait for MinHold: the context of release has ended then.
func (c *Client) during(ctx context.Context, name string, release func(context.Context) error, fn func() error) (err error) {
	returned := false
	defer func() {
		if !returned {
			ended, cancel := context.WithCancel(ctx)
			cancel()
			ctx = ended
		}
		released := release(ctx)
		switch {
		case released == nil:
		case !returned: // panicking: there is nobody to return it to
			c.holds.Log.Error("release after a panic failed", "lock", name, "err", released)
		case !errors.Is(err, released):
			err = errors.Join(err, released)
		}
	}()
	err = fn()
	returned = true
	return err
}
