package beside

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"

	"github.com/leasehold-dev/leasehold"
)

// The two sides of the difference in docs/moving/redislock.md.

var errInUse = errors.New("the invoice is in use")

func chargeByRedislock(ctx context.Context, locker *redislock.Client, id string, charge chargeFunc) error {
	lock, err := locker.Obtain(ctx, "invoices/"+id, 10*time.Second, nil)
	if errors.Is(err, redislock.ErrNotObtained) {
		return errInUse
	}
	if err != nil {
		return err
	}
	defer lock.Release(context.WithoutCancel(ctx))
	return charge(ctx, id)
}

func chargeInsteadOfRedislock(ctx context.Context, locks *leasehold.Client, id string, charge chargeFunc) error {
	lock := locks.Mutex("invoices/" + id).With(leasehold.LockOptions{TTL: 10 * time.Second, Tries: 1})
	err := lock.Do(ctx, func(ctx context.Context, l *leasehold.Lease) error {
		return charge(ctx, id)
	})
	if errors.Is(err, leasehold.ErrBusy) {
		return errInUse
	}
	return err
}
