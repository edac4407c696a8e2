package load

import (
	"context"

	"github.com/leasehold-dev/leasehold"
)

// leases locks with a client as anybody would: with its renewal, its deadlines
// and its token.
type leases struct {
	lock  *leasehold.Lock
	lease *leasehold.Lease
}

// OfLock is a Pair that takes and gives back l. Nobody else is expected to ask
// for it: a lock that is taken is an error, not a reason to wait.
func OfLock(l *leasehold.Lock) Pair { return &leases{lock: l} }

func (p *leases) Lock(ctx context.Context) (err error) {
	p.lease, err = p.lock.Try(ctx)
	return err
}

func (p *leases) Unlock(ctx context.Context) error { return p.lease.Release(ctx) }
