package leasehold

import (
	"context"
	"errors"
)

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
	lease, err := l.c.wait(ctx, &l.r, l.r.o.Tries, true)
	if err != nil {
		return err
	}
	return l.during(ctx, lease, fn)
}

// during calls fn with lease, and releases it.
func (l *Lock) during(ctx context.Context, lease *Lease, fn func(ctx context.Context, l *Lease) error) error {
	return l.r.during(ctx, lease.Release, func() error { return fn(lease.Context(), lease) })
}

// during calls fn, and then release, whatever becomes of fn. It joins their errors. A panic
// does not wait for MinHold: the context of release has ended then.
func (r *recipe) during(ctx context.Context, release func(context.Context) error, fn func() error) (err error) {
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
			r.c.log.Error("release after a panic failed", "lock", r.name, "err", released)
		case !errors.Is(err, released):
			err = errors.Join(err, released)
		}
	}()
	err = fn()
	returned = true
	return err
}
