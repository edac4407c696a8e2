package leasehold

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// All is several locks that are acquired together: all of them or none. It is
// immutable, cheap to make and safe for concurrent use.
//
// The locks are acquired one after the other, in the byte order of their names, and
// those that are held are renewed meanwhile. So sets that overlap cannot block each other
// for ever, as long as no caller acquires one of the locks while it holds another in some
// other way.
//
// LockOptions.MaxHold counts from when all locks are held, and NoRenew takes effect then: until
// then the locks that are held are renewed.
//
// Each lock costs a request of its own. Requests for all of them at once would save round
// trips if all are free. But if one is not, the others would have to be released, and
// meanwhile other callers would find them held.
type All struct {
	c     *Client
	locks []*Lock // in the order of their names
	wrong error
}

// All returns the locks as one. They may be of different kinds and have different
// options. It sends nothing. Acquire, Try and Do return an error that matches ErrInvalid,
// and send nothing, if there are no locks, if two have the same name, or if one is of
// another Client.
func (c *Client) All(locks ...*Lock) *All {
	a := &All{c: c, locks: slices.Clone(locks)}
	if setsOrdered {
		slices.SortFunc(a.locks, func(x, y *Lock) int { return cmp.Compare(x.name, y.name) })
	}
	if len(locks) == 0 {
		a.wrong = invalid("no locks to acquire together")
	}
	for i, l := range a.locks {
		switch {
		case l.c != c:
			a.wrong = invalid("lock %q is of another Client: locks that are acquired together are of one", l.name)
		case i > 0 && l.name == a.locks[i-1].name:
			a.wrong = invalid("lock %q is listed twice among locks to acquire together", l.name)
		}
	}
	return a
}

// With returns a copy of a in which the options set in o replace those of every lock.
func (a *All) With(o LockOptions) *All {
	with := &All{c: a.c, wrong: a.wrong}
	for _, l := range a.locks {
		with.locks = append(with.locks, l.With(o))
	}
	return with
}

// Acquire blocks until it has all locks, and returns their leases, which outlive ctx.
// The caller must release them. The errors are those of Lock.Acquire, for the lock that
// could not be acquired; all others are free again then. If a lock is lost while Acquire waits
// for another, it begins anew.
func (a *All) Acquire(ctx context.Context) (*Leases, error) {
	return a.acquire(ctx, false, false)
}

// Try makes one attempt for each lock, and none after one that fails. It does not wait
// for a lock to become free: the error then matches ErrBusy. Otherwise it is like
// Acquire.
func (a *All) Try(ctx context.Context) (*Leases, error) { return a.acquire(ctx, true, false) }

// Do acquires all locks as Acquire does, calls fn while they are held, and releases
// them. The context given to fn ends when ctx does, and when the first of the leases is
// lost. Otherwise Do is like Lock.Do.
func (a *All) Do(ctx context.Context, fn func(ctx context.Context, ls *Leases) error) error {
	ls, err := a.acquire(ctx, false, true)
	if err != nil {
		return err
	}
	return a.c.during(ctx, a.locks[0].name, ls.Release, func() error { return fn(ls.Context(), ls) })
}

// acquire acquires all locks, and again from the first if one was lost meanwhile.
func (a *All) acquire(ctx context.Context, once, bound bool) (*Leases, error) {
	mustHave(ctx)
	if a.wrong != nil {
		return nil, a.wrong
	}
	for _, l := range a.locks {
		if _, err := l.o.life(); err != nil {
			return nil, err
		}
	}
	for try := 1; ; try++ {
		ls, again, err := a.acquireInOrder(ctx, once, bound)
		if !again || once || ctx.Err() != nil {
			return ls, err
		}
		clock.Sleep(ctx, max(a.c.holds.RetryDelay(try), time.Millisecond))
	}
}

// acquireInOrder acquires one lock after the other, and releases those it has if one
// cannot be acquired. If it fails because one of those was lost, it may be called again.
func (a *All) acquireInOrder(ctx context.Context, once, bound bool) (ls *Leases, again bool, err error) {
	ls = &Leases{}
	complete := false
	held := ls
	defer func() {
		for _, l := range slices.Backward(held.leases) {
			if !complete {
				l.held.Discard()
			}
		}
	}()
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	for _, lock := range a.locks {
		tries := lock.o.Tries
		if once {
			tries = 1
		}
		l, err := lock.withoutBounds().wait(waiting, tries, false)
		if err != nil {
			if lost := ls.Err(); lost != nil && ctx.Err() == nil {
				return nil, true, lost
			}
			return nil, false, err
		}
		ls.leases = append(ls.leases, l)
		context.AfterFunc(l.Context(), stop)
	}
	for i, l := range ls.leases {
		if life, err := a.locks[i].o.life(); err == nil {
			l.held.Bound(life)
		}
	}
	if err := ls.Err(); err != nil {
		return nil, true, err
	}
	ls.begin(ctx, bound)
	complete = true
	return ls, false, nil
}

// withoutBounds returns l for a lease whose hold is not bounded, until all locks are held.
func (l *Lock) withoutBounds() *Lock {
	if l.o.MaxHold == 0 && !l.o.NoRenew {
		return l
	}
	unbounded := *l
	unbounded.unrenewed = l.o.NoRenew
	unbounded.o.MaxHold, unbounded.o.NoRenew = 0, false
	return &unbounded
}

// Leases are the leases of locks that were acquired together. They are safe for
// concurrent use.
type Leases struct {
	leases []*Lease // in the order of their names
	ctx    context.Context
	end    context.CancelCauseFunc // of ctx
}

// begin makes the context of all leases.
func (ls *Leases) begin(ctx context.Context, bound bool) {
	if !bound {
		ctx = context.WithoutCancel(ctx)
	}
	for _, l := range ls.leases {
		ctx = l.held.CarriedBy(ctx)
	}
	ls.ctx, ls.end = context.WithCancelCause(ctx)
	for _, l := range ls.leases {
		held := l.Context()
		context.AfterFunc(held, func() { ls.end(context.Cause(held)) })
	}
}

// Each returns the leases in the byte order of their names. Each has a fencing token of
// its own.
func (ls *Leases) Each() []*Lease { return slices.Clone(ls.leases) }

// Of returns the lease of the lock of that name, or nil if it is not among them.
func (ls *Leases) Of(name string) *Lease {
	for _, l := range ls.leases {
		if l.Name() == name {
			return l
		}
	}
	return nil
}

// Context returns a context that ends when the first of the leases does; context.Cause
// is then the error of its Err. It carries all leases: see Lock.Acquire on re-entry. Under Do it also ends when the context of Do does.
func (ls *Leases) Context() context.Context { return ls.ctx }

// Deadline returns the end of validity of all leases together: the earliest of theirs.
// See Lease.Deadline.
func (ls *Leases) Deadline() time.Time {
	earliest := ls.leases[0].Deadline()
	for _, l := range ls.leases[1:] {
		if d := l.Deadline(); d.Before(earliest) {
			earliest = d
		}
	}
	return earliest
}

// Err returns nil while all leases can be trusted, and otherwise what Lease.Err returns
// for the first that cannot, by name. It does not block.
func (ls *Leases) Err() error {
	for _, l := range ls.leases {
		if err := l.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Release releases all leases, in the opposite order, and joins their errors: see
// Lease.Release. It blocks for each in turn, so that their bounds add up.
func (ls *Leases) Release(ctx context.Context) error {
	mustHave(ctx)
	var errs []error
	for _, l := range slices.Backward(ls.leases) {
		errs = append(errs, l.Release(ctx))
	}
	return errors.Join(errs...)
}
