package cell

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/bench/locks"
	"github.com/leasehold-dev/leasehold/internal/lab/load"
)

// patience is how long the check tries to take a lock that is held.
const patience = 200 * time.Millisecond

// exclusion checks that a held lock is refused and a released one is granted: anything
// else is not a lock. It uses two clients, as two processes would. A lock that several can
// hold is held as often as it can be; what any number can hold is only held twice.
func exclusion(ctx context.Context, name string, limit int, a, b locks.Client) error {
	first, second := a.Pair(name), b.Pair(name)
	if limit == locks.Unlimited {
		return sharing(ctx, first, second)
	}
	for range limit - 1 {
		beside := b.Pair(name)
		if err := locks.Insist(ctx, beside.Lock); err != nil {
			return fmt.Errorf("a lock that %d can hold: %w", limit, err)
		}
		defer beside.Unlock(ctx)
	}
	if err := locks.Insist(ctx, first.Lock); err != nil {
		return fmt.Errorf("a free lock: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	locked := make(chan error, 1)
	go func() { locked <- second.Lock(limited) }()
	select {
	case err := <-locked:
		if err == nil {
			return errors.New("a lock that is held was granted again")
		}
		locked <- err
	case <-time.After(2 * patience): // it waits, and knows no limit
	}
	if err := first.Unlock(ctx); err != nil {
		return fmt.Errorf("unlock: %w", err)
	}
	if err := <-locked; err != nil {
		if err := lockSoon(ctx, second); err != nil {
			return fmt.Errorf("a lock that was released: %w", err)
		}
	}
	return second.Unlock(ctx)
}

// sharing checks that two can hold a lock at once.
func sharing(ctx context.Context, first, second load.Pair) error {
	for _, p := range []load.Pair{first, second} {
		if err := locks.Insist(ctx, p.Lock); err != nil {
			return fmt.Errorf("a lock that any number can hold: %w", err)
		}
		defer p.Unlock(ctx)
	}
	return nil
}

// lockSoon retries for a while, because the implementation may still be cleaning up.
func lockSoon(ctx context.Context, p load.Pair) error {
	return locks.Insist(ctx, func(ctx context.Context) error {
		limited, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		return p.Lock(limited)
	})
}
