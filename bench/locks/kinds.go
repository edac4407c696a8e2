package locks

import (
	"context"
	"fmt"

	lh "github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/lab/load"
)

const (
	// Permits is how many permits the semaphore has that is measured beside a mutex.
	Permits = 8
	// Unlimited is the Limit of a lock that any number can hold.
	Unlimited = -1
)

// reading is Leasehold with a read-write lock that is only read.
func reading() Kind {
	return leaseholdOf("reader", Unlimited, func(c *lh.Client, name string) *lh.Lock { return c.RW(name).Read() })
}

// permit is Leasehold with one permit of a semaphore.
func permit() Kind {
	return leaseholdOf("permit", Permits, func(c *lh.Client, name string) *lh.Lock { return c.Semaphore(name, Permits) })
}

// leaseholdOf is leasehold(1) with another kind of lock, of which as many as limit can be held
// at once.
func leaseholdOf(what string, limit int, lock func(c *lh.Client, name string) *lh.Lock) Kind {
	k := leasehold(1)
	k.Name, k.Label, k.Limit = fmt.Sprintf("leasehold-%s-1", what), fmt.Sprintf("Leasehold, a %s, 1 node", what), limit
	k.Open = func(ctx context.Context, addrs []string) (Client, error) {
		st, c, err := Leasehold(ctx, addrs, nil)
		if err != nil {
			return nil, err
		}
		pair := func(name string) load.Pair { return load.OfLock(lock(c, name).With(lh.LockOptions{TTL: TTL})) }
		return client{pair, func() { st.Close() }}, nil
	}
	return k
}

// permitWaiting is permit, waiting for its turn.
func permitWaiting() Kind {
	k := permit()
	k.Open = func(ctx context.Context, addrs []string) (Client, error) {
		st, c, err := Leasehold(ctx, addrs, nil)
		if err != nil {
			return nil, err
		}
		pair := func(name string) load.Pair {
			return &leaseholdWaiting{lock: c.Semaphore(name, Permits).With(lh.LockOptions{TTL: TTL})}
		}
		return client{pair, func() { st.Close() }}, nil
	}
	return k
}
