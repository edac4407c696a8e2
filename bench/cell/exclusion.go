package cell

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/bench/locks"
	"github.com/leasehold-dev/leasehold/internal/lab/load"
)

// patience is how long a lock that is taken is seen not to be had.
const patience = 200 * time.Millisecond

// exclusion sees that a lock that is held is not to be had, and one that was
// given back is: whatever else was measured would be no lock. The two who ask
// are different clients, as two processes are.
func exclusion(ctx context.Context, name string, a, b locks.Client) error {
	first, second := a.Pair(name), b.Pair(name)
	if err := first.Lock(ctx); err != nil {
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
			return fmt.Errorf("a lock that was given back: %w", err)
		}
	}
	return second.Unlock(ctx)
}

// lockSoon allows for what is still being cleaned up.
func lockSoon(ctx context.Context, p load.Pair) error {
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		limited, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := p.Lock(limited)
		cancel()
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}
