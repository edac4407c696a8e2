package load

import (
	"context"

	"github.com/leasehold-dev/leasehold"
)

// leases locks with a client as programs do: with its renewal, its deadlines and
// its token.
type leases struct {
	lock  *leasehold.Lock
	lease *leasehold.Lease
}

// OfLock returns a Pair that acquires and releases l. It does not wait: a lock
// that another owner holds is an error.
func OfLock(l *leasehold.Lock) Pair { return &leases{lock: l} }

func (p *leases) Lock(ctx context.Context) (err error) {
	p.lease, err = p.lock.Try(ctx)
	return err
}

func (p *leases) Unlock(ctx context.Context) error { return p.lease.Release(ctx) }
