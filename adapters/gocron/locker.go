// Package gocron has jobs of gocron v2 run by one scheduler among several. A Locker has
// each run of a job done by the first scheduler that gets to it; an Elector has all jobs
// run by one scheduler, as long as it leads.
package gocron

import (
	"context"
	"errors"

	"github.com/go-co-op/gocron/v2"

	"github.com/leasehold-dev/leasehold"
)

// LockerOptions configures a Locker. The zero value and nil mean the defaults.
type LockerOptions struct {
	// Prefix comes before the name of a job in the name of its lock. Name jobs with
	// gocron.WithName: a job without a name has that of its function, which all jobs of the
	// function share, and which another version of the program may change. Default: none.
	Prefix string
	// Lock are the options of the locks. Set MinHold to more than the clocks of the
	// schedulers differ, or a scheduler whose clock is late runs a short job again. A run
	// takes as long as MinHold at least, then.
	Lock leasehold.LockOptions
	// Lost is called when the lease of a job is lost while the job runs: other schedulers
	// can run it as well then. gocron cannot tell the job. It is called on a goroutine of
	// its own. Default: nobody is notified.
	Lost func(job string, err error)
}

// Locker is a gocron.Locker, for gocron.WithDistributedLocker. It is safe for concurrent
// use.
type Locker struct {
	client *leasehold.Client
	o      LockerOptions
}

var _ gocron.Locker = (*Locker)(nil)

// NewLocker returns a Locker with locks of c. A nil o means the defaults.
func NewLocker(c *leasehold.Client, o *LockerOptions) *Locker {
	l := &Locker{client: c}
	if o != nil {
		l.o = *o
	}
	return l
}

// Lock makes one attempt to lock the job, and blocks for the store's answer. The error
// matches leasehold.ErrBusy if another scheduler runs the job. Otherwise it is as that of
// leasehold.Lock.Try.
//
// gocron skips the run whatever the error is, and tells only the listener that
// gocron.AfterLockError gives the job. Have it report errors that do not match ErrBusy, or
// nobody sees that jobs are skipped because the store cannot be reached.
func (l *Locker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	lease, err := l.client.Mutex(l.o.Prefix + job).With(l.o.Lock).Try(ctx)
	if err != nil {
		return nil, err
	}
	if lost := l.o.Lost; lost != nil {
		context.AfterFunc(lease.Context(), func() {
			if err := lease.Err(); errors.Is(err, leasehold.ErrLost) {
				lost(job, err)
			}
		})
	}
	return locked{lease}, nil
}

// locked is a job that runs.
type locked struct{ lease *leasehold.Lease }

// Unlock releases the lock, as Lease.Release does.
func (l locked) Unlock(ctx context.Context) error { return l.lease.Release(ctx) }
