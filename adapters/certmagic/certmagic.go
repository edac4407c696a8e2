// Package certmagic locks certificates of CertMagic by lease, with any storage. Several
// machines with the same storage then obtain each certificate once, whatever the storage
// offers for locks.
package certmagic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caddyserver/certmagic"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/adapters/internal/held"
)

// Options configures a Storage. The zero value and nil mean the defaults.
type Options struct {
	// Prefix comes before CertMagic's name of a lock. Default: "certmagic/".
	Prefix string
	// Lock are the options of the locks.
	Lock leasehold.LockOptions
}

// Storage is a certmagic.Storage whose locks are leases. It is safe for concurrent use.
type Storage struct {
	certmagic.Storage
	client *leasehold.Client
	o      Options
	leases held.Leases[string] // by CertMagic's name
}

var (
	_ certmagic.Storage          = (*Storage)(nil)
	_ certmagic.TryLocker        = (*Storage)(nil)
	_ certmagic.LockLeaseRenewer = (*Storage)(nil)
)

// New returns a Storage that keeps data in s and locks in the store of c. A nil o means the
// defaults.
func New(s certmagic.Storage, c *leasehold.Client, o *Options) *Storage {
	st := &Storage{Storage: s, client: c}
	if o != nil {
		st.o = *o
	}
	if st.o.Prefix == "" {
		st.o.Prefix = "certmagic/"
	}
	return st
}

func (s *Storage) lock(name string) *leasehold.Lock {
	return s.client.Mutex(s.o.Prefix + name).With(s.o.Lock)
}

// Lock blocks until it has the lock, or ctx ends. The error is as that of
// leasehold.Lock.Acquire. The lease is renewed until Unlock. The name may have any
// characters. The error matches leasehold.ErrInvalid if prefix and name are longer than
// store.MaxName, which no domain or address is, or if the prefix is reserved.
func (s *Storage) Lock(ctx context.Context, name string) error {
	lease, err := s.lock(name).Acquire(ctx)
	if err != nil {
		return err
	}
	s.leases.Add(name, lease)
	return nil
}

// TryLock makes one attempt, and reports whether it has the lock. It blocks for the
// store's answer.
func (s *Storage) TryLock(ctx context.Context, name string) (bool, error) {
	lease, err := s.lock(name).Try(ctx)
	switch {
	case err == nil:
		s.leases.Add(name, lease)
		return true, nil
	case errors.Is(err, leasehold.ErrBusy):
		return false, nil
	}
	return false, err
}

// RenewLockLease returns nil if the lock is still held. It does not block, and renews
// nothing, since the lease is renewed as long as it is held. The error matches
// leasehold.ErrLost if the lease was lost.
func (s *Storage) RenewLockLease(_ context.Context, name string, _ time.Duration) error {
	lease := s.leases.Oldest(name)
	if lease == nil {
		return fmt.Errorf("lock %q is not locked", name)
	}
	return lease.Err()
}

// Unlock releases the lock, as leasehold.Lease.Release does. The error matches
// leasehold.ErrLost if the lease was lost. If this process has locked the name again since
// then, the next Unlock belongs to the lost lease, and the new lease stays.
func (s *Storage) Unlock(ctx context.Context, name string) error {
	lease := s.leases.Take(name)
	if lease == nil {
		return fmt.Errorf("lock %q is not locked", name)
	}
	return lease.Release(ctx)
}
