package leasehold

import (
	"context"
	"errors"
)

// Do acquires the lock as Acquire does, runs fn while it is held, and releases
// it whatever fn does.
//
// fn's ctx ends when ctx does, and, with cause ErrLost, when the lease is lost:
// before anybody else can hold the lock, by LockOptions.Notice. fn must stop
// then; what it must not do twice it should hand l.Token() to.
//
// The error joins fn's own, the loss of the lease (even when fn returned nil)
// and that of the release. If fn panics, or ends its goroutine, the lock is
// released on the way out. Within fn the same lock can be locked again with its
// ctx: see Acquire.
func (l *Lock) Do(ctx context.Context, fn func(ctx context.Context, l *Lease) error) (err error) {
	lease, err := l.wait(ctx, l.o.Tries, true)
	if err != nil {
		return err
	}
	returned := false
	defer func() {
		released := lease.Release(ctx)
		switch {
		case released == nil:
		case !returned: // panicking: there is nobody to return it to
			l.c.log.Error("release after a panic failed", "lock", l.name, "err", released)
		case !errors.Is(err, released):
			err = errors.Join(err, released)
		}
	}()
	err = fn(lease.Context(), lease)
	returned = true
	return err
}
