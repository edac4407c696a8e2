// Package goose has goose v3 migrate a database under a lease, wherever the locks are.
// The lease needs no session of the database, so it works through a connection pool such
// as PgBouncer, and for databases that have no locks of their own.
//
// goose cannot be notified that a lease was lost while it migrates. To have a migration
// stopped then, run it under the lock instead of giving goose a Locker:
//
//	err := lock.Do(ctx, func(ctx context.Context, _ *leasehold.Lease) error {
//		_, err := provider.Up(ctx)
//		return err
//	})
//
// If a process is killed in the midst of a migration, the next one waits until the TTL of
// the lease is over, and runs that migration again. A database undoes what was done within
// a transaction. What a migration without a transaction did stays, so it must be possible
// to run it twice.
package goose

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/pressly/goose/v3/lock"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/adapters/internal/held"
)

// Locker locks migrations. It is both a lock.SessionLocker and a lock.Locker, for
// goose.WithSessionLocker and goose.WithLocker, and can be given to several providers. It
// is safe for concurrent use.
type Locker struct {
	lock   *leasehold.Lock
	leases held.Leases[any] // by *sql.Conn or *sql.DB
}

var (
	_ lock.SessionLocker = (*Locker)(nil)
	_ lock.Locker        = (*Locker)(nil)
)

// New returns a Locker with which one provider at a time migrates: name the lock after
// the database.
func New(l *leasehold.Lock) *Locker {
	return &Locker{lock: l}
}

// SessionLock blocks until it has the lock, or ctx ends. It does not use conn. The error is
// as that of leasehold.Lock.Acquire.
func (l *Locker) SessionLock(ctx context.Context, conn *sql.Conn) error { return l.acquire(ctx, conn) }

// SessionUnlock releases the lock, as leasehold.Lease.Release does. The error matches
// leasehold.ErrLost if the lease was lost during the migration: another process may have
// migrated the database at the same time. Another error means that the lock may not be free
// before its TTL is over. The migrations that goose returns with it were applied.
func (l *Locker) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	return l.release(ctx, conn)
}

// Lock is SessionLock for a lock.Locker.
func (l *Locker) Lock(ctx context.Context, db *sql.DB) error { return l.acquire(ctx, db) }

// Unlock is SessionUnlock for a lock.Locker.
func (l *Locker) Unlock(ctx context.Context, db *sql.DB) error { return l.release(ctx, db) }

func (l *Locker) acquire(ctx context.Context, by any) error {
	lease, err := l.lock.Acquire(ctx)
	if err != nil {
		return err
	}
	l.leases.Add(by, lease)
	return nil
}

func (l *Locker) release(ctx context.Context, by any) error {
	lease := l.leases.Take(by)
	if lease == nil {
		return fmt.Errorf("lock %q is not locked", l.lock.Name())
	}
	return lease.Release(ctx)
}
