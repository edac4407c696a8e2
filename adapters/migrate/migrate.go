// Package migrate has golang-migrate migrate a database under a lease, wherever the locks
// are. The lease needs no session of the database, and works for databases whose driver
// has no lock.
//
// A driver is opened before it has the lease. The drivers of PostgreSQL, MySQL and others then
// take their own lock for a moment, to make the table of versions. Open them on connections
// that keep their session: through PgBouncer in its transaction mode that lock can stay
// behind.
//
// If a process is killed in the midst of a step, its lease ends by the TTL, and the next
// Migrate says that the database is dirty, as without Leasehold: repair what the step left
// half done, and call Migrate.Force with the version that the database has then.
package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/golang-migrate/migrate/v4/database"

	"github.com/leasehold-dev/leasehold"
)

// driver is a database.Driver whose locks are leases.
type driver struct {
	database.Driver
	lock *leasehold.Lock
	wait time.Duration

	mu     sync.Mutex
	lease  *leasehold.Lease // nil while it is not locked
	closed bool
}

// Wrap returns a driver that does what d does, except that it locks with l: name the lock
// after the database. Closing it closes d and releases the lock.
//
// Its Lock waits for that long, or makes one attempt if wait is 0 or less. Keep wait below
// Migrate.LockTimeout (15 s by default): a Migrate that has given up releases what its
// driver obtains later only when it is closed. Keep the TTL of l below wait, such as 10 s
// and 12 s: a Migrate that comes after one that was killed then waits for the end of that
// lease, and is not refused.
//
// If the lease is lost during a migration, the driver runs no further step and records no
// version: the database stays marked as dirty if a step was under way, so that a person
// looks at it.
func Wrap(d database.Driver, l *leasehold.Lock, wait time.Duration) database.Driver {
	return &driver{Driver: d, lock: l, wait: wait}
}

// Open opens a database of the same kind, with the same lock.
func (d *driver) Open(url string) (database.Driver, error) {
	inner, err := d.Driver.Open(url)
	if err != nil {
		return nil, err
	}
	return Wrap(inner, d.lock, d.wait), nil
}

// Lock acquires the lease. The error matches database.ErrLocked and leasehold.ErrBusy if
// another process has it.
func (d *driver) Lock() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return errors.New("the driver is closed")
	case d.lease != nil:
		return database.ErrLocked
	}
	lease, err := d.acquire()
	if errors.Is(err, leasehold.ErrBusy) {
		return fmt.Errorf("%w: %w", database.ErrLocked, err)
	}
	d.lease = lease
	return err
}

func (d *driver) acquire() (*leasehold.Lease, error) {
	if d.wait <= 0 {
		return d.lock.Try(context.Background())
	}
	ctx, cancel := context.WithTimeout(context.Background(), d.wait)
	defer cancel()
	return d.lock.Acquire(ctx)
}

// Unlock releases the lease. The error matches leasehold.ErrLost if it was lost. Another
// error means that the lock may not be free before its TTL is over. After an error, Migrate
// takes itself for locked: make another one.
func (d *driver) Unlock() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lease == nil {
		return database.ErrNotLocked
	}
	lease := d.lease
	d.lease = nil
	return lease.Release(context.Background())
}

// Close closes the database, and releases the lease if there is one. It waits for a Lock
// that is under way. Later calls only close the database.
func (d *driver) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	err := d.Driver.Close() // first: it ends what the lock protects
	if d.lease != nil {
		err = errors.Join(err, d.lease.Release(context.Background()))
		d.lease = nil
	}
	return err
}

// lost returns why the lease was lost, or nil if it was not, or if there is none.
func (d *driver) lost() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lease == nil {
		return nil
	}
	return d.lease.Err()
}

// Run runs a step, unless the lease was lost.
func (d *driver) Run(migration io.Reader) error {
	if err := d.lost(); err != nil {
		return err
	}
	return d.Driver.Run(migration)
}

// SetVersion records the version, unless the lease was lost.
func (d *driver) SetVersion(version int, dirty bool) error {
	if err := d.lost(); err != nil {
		return err
	}
	return d.Driver.SetVersion(version, dirty)
}

// Drop empties the database, unless the lease was lost.
func (d *driver) Drop() error {
	if err := d.lost(); err != nil {
		return err
	}
	return d.Driver.Drop()
}
