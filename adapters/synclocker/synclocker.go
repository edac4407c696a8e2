// Package synclocker makes a sync.Locker of a lock, for code that knows nothing else.
//
// A sync.Locker cannot say that a lock was not obtained, that a wait should end, or that a
// lease was lost while it was held. Use leasehold.Lock.Do where you can. This package
// does what is left: Lock goes on until it has the lock, and a function learns of a loss.
package synclocker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/adapters/internal/held"
	"github.com/leasehold-dev/leasehold/store"
)

// Locker is a sync.Locker. Its methods are safe for concurrent use.
type Locker struct {
	lock   *leasehold.Lock
	lost   func(error)
	leases held.Leases[struct{}]
}

var _ sync.Locker = (*Locker)(nil)

// New returns a Locker of lock, which is not locked.
//
// The function lost is called if the lease is lost between Lock and Unlock: the caller of
// Lock no longer excludes others then, but does not know. It should end what the lock
// protects, for example the process. It is called once per lease, on a goroutine of its
// own, with an error that matches leasehold.ErrLost, and LockOptions.Notice before others
// can have the lock. New panics if lost is nil.
func New(lock *leasehold.Lock, lost func(error)) *Locker {
	if lost == nil {
		panic("synclocker: a nil function would hide that the lock is lost")
	}
	return &Locker{lock: lock, lost: lost}
}

// Lock blocks until it has the lock: nothing ends the wait. While the store cannot be
// reached it tries again, once a second at most. It panics if trying again cannot help:
// if the name or the options are invalid or not supported by the store, if the name is in
// use for another kind of lock, or if the store is closed.
func (l *Locker) Lock() {
	ctx := context.Background()
	lease, err := l.lock.Acquire(ctx)
	for ; err != nil; lease, err = l.lock.Acquire(ctx) {
		for _, hopeless := range []error{leasehold.ErrInvalid, leasehold.ErrUnsupported, leasehold.ErrKindMismatch, store.ErrClosed} {
			if errors.Is(err, hopeless) {
				panic(fmt.Sprintf("synclocker: lock %q: %v", l.lock.Name(), err))
			}
		}
		time.Sleep(time.Second)
	}
	l.leases.Add(struct{}{}, lease)
	context.AfterFunc(lease.Context(), func() {
		if err := lease.Err(); errors.Is(err, leasehold.ErrLost) {
			l.lost(err)
		}
	})
}

// Unlock releases the lock, and blocks for the store's answer as Lease.Release does. If
// the release fails, the lock ends by its TTL. Unlock panics if l is not locked. As with
// a sync.Mutex, another goroutine may have locked it. If a lease was lost and
// the lock was locked again since, the next Unlock belongs to the lost lease, and the new lease stays.
func (l *Locker) Unlock() {
	lease := l.leases.Take(struct{}{})
	if lease == nil {
		panic("synclocker: unlock of an unlocked Locker")
	}
	lease.Release(context.Background()) // the client logs what is not known of it
}
