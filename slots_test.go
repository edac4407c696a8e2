package leasehold_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

// numbering is a store that numbers permits, as several servers do. It reports the renewals
// to the test.
type numbering struct {
	store.Engine
	renewed chan store.Lease
}

func (s numbering) Acquire(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
	g, err := s.Engine.Acquire(ctx, r)
	g.Lease.Slots = []int64{1, 3}
	return g, err
}

func (s numbering) Renew(ctx context.Context, leases []store.Lease) []error {
	for _, r := range leases {
		select {
		case s.renewed <- r:
		default:
		}
	}
	return s.Engine.Renew(ctx, leases)
}

// Renewals name the slots that were granted.
func TestRenewalsNameTheSlots(t *testing.T) {
	s := numbering{memstore.New(nil), make(chan store.Lease, 1)}
	defer s.Close()
	lock := leasehold.New(store.New(s), nil).Semaphore("pool", 4).With(leasehold.LockOptions{Weight: 2, RenewEvery: 10 * time.Millisecond})
	l, err := lock.Try(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r := <-s.renewed; !slices.Equal(r.Slots, []int64{1, 3}) || r.Weight != 2 {
		t.Errorf("renewed %+v, want the granted slots 1,3 and weight 2", r)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
