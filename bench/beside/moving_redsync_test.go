package beside

import (
	"context"
	"time"

	"github.com/go-redsync/redsync/v4"

	"github.com/leasehold-dev/leasehold"
)

// The two sides of the difference in docs/moving/redsync.md.

func chargeByRedsync(ctx context.Context, rs *redsync.Redsync, id string, charge chargeFunc) error {
	mutex := rs.NewMutex("invoices/"+id, redsync.WithExpiry(10*time.Second))
	if err := mutex.LockContext(ctx); err != nil {
		return err
	}
	defer mutex.UnlockContext(context.WithoutCancel(ctx))
	return charge(ctx, id)
}

func chargeInsteadOfRedsync(ctx context.Context, locks *leasehold.Client, id string, charge chargeFunc) error {
	mutex := locks.Mutex("invoices/" + id).With(leasehold.LockOptions{TTL: 10 * time.Second})
	return mutex.Do(ctx, func(ctx context.Context, l *leasehold.Lease) error {
		return charge(ctx, id)
	})
}
