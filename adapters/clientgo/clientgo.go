// Package clientgo has the leader election of client-go, and so that of
// controller-runtime, decided by a lease of Leasehold, wherever the locks are. Candidates
// need no right to write to the API server, and can run outside of Kubernetes. They
// exclude all other holders of a mutex of that name, such as those of
// leasehold.Election and "leasehold elect".
//
// With client-go:
//
//	lock, err := clientgo.New(client, "controller", nil)
//	...
//	config := lock.Config()
//	config.ReleaseOnCancel = true
//	config.Callbacks = leaderelection.LeaderCallbacks{OnStartedLeading: lead, OnStoppedLeading: stop}
//	leaderelection.RunOrDie(ctx, config)
//
// With controller-runtime:
//
//	durations := lock.Config()
//	manager, err := ctrl.NewManager(kubeconfig, ctrl.Options{
//		LeaderElection:                      true,
//		LeaderElectionResourceLockInterface: lock,
//		LeaderElectionReleaseOnCancel:       true, // only if the program ends as soon as the manager does
//		LeaseDuration:                       &durations.LeaseDuration,
//		RenewDeadline:                       &durations.RenewDeadline,
//		RetryPeriod:                         &durations.RetryPeriod,
//	})
//
// A manager needs the durations if they are not the defaults, although the documentation of
// LeaderElectionResourceLockInterface says that it ignores them.
//
// # What it adds
//
// With an object of Kubernetes, each candidate judges by its own clock how old the record
// of another is, and nothing refuses a leader that is late. Here the store decides. An
// update renews the lease, and fails if the lease would not outlast the elector, should
// this update be the last that succeeds: a leader that is cut off from the store stops
// leading at least Options.Notice before another candidate can lead. Each term has a
// fencing token: see Lock.Token.
//
// The record of an election is not kept in the store. Get makes one of what the store says
// of the holder. Coordinated leader election, which is alpha, does not work with it.
package clientgo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/leasehold-dev/leasehold"
)

// Lock is a resourcelock.Interface for one elector at a time, which may be run again. It
// is safe for concurrent use.
type Lock struct {
	election *leasehold.Election // asks who leads
	mutex    *leasehold.Lock
	o        Options

	mu     sync.Mutex
	term   *term // the present one, or the last one while its lease may be valid; nil: none
	misfit error // why the elector cannot use the lock
}

var _ resourcelock.Interface = (*Lock)(nil)

// term is the time for which the elector leads with one lease. An elector that did not
// release the lease can take the term up again.
type term struct {
	lease   *leasehold.Lease
	record  resourcelock.LeaderElectionRecord // as the elector wrote it last
	leading bool                              // the elector leads, or is about to
	failing bool                              // the last update failed
	unwatch func() bool                       // ends the watch for a loss
}

// New returns a Lock for an election among all that use that name in the store of c. It
// sends nothing. A nil o means the defaults. The error matches leasehold.ErrInvalid if
// the options do not fit together; an invalid name is reported by the elector's log.
func New(c *leasehold.Client, name string, o *Options) (*Lock, error) {
	full, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Lock{
		election: c.Election(name),
		mutex: c.Mutex(name).With(leasehold.LockOptions{
			TTL: full.LeaseDuration, Notice: full.Notice, Require: full.Require, Purpose: full.Identity,
			NoRenew: true, // the elector renews
		}),
		o: full,
	}, nil
}

// Config returns the configuration of an elector with this lock and its durations.
// Callbacks are missing, and ReleaseOnCancel is not set.
func (l *Lock) Config() leaderelection.LeaderElectionConfig {
	return leaderelection.LeaderElectionConfig{
		Lock: l, Name: l.mutex.Name(),
		LeaseDuration: l.o.LeaseDuration, RenewDeadline: l.o.RenewDeadline, RetryPeriod: l.o.RetryPeriod,
	}
}

// Token returns the fencing token of the term, which is larger than that of all earlier
// leaders, or 0 if the elector does not lead. Read it once, when OnStartedLeading begins,
// and pass it to the resources that the leader writes to, so that they refuse smaller
// ones. It does not block.
func (l *Lock) Token() leasehold.Token {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term == nil || !l.term.leading {
		return 0
	}
	return l.term.lease.Token()
}

// Identity returns the name of the candidate.
func (l *Lock) Identity() string { return l.o.Identity }

// Describe names the lock in the elector's log.
func (l *Lock) Describe() string { return "leasehold/" + l.mutex.Name() }

// The elector's word for the end of a term, which it says before anybody else is notified.
const stoppedLeading = "stopped leading"

// RecordEvent learns from the elector that it has stopped leading. No event is recorded.
func (l *Lock) RecordEvent(event string) {
	if event != stoppedLeading {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.term; t != nil {
		t.leading, t.failing = false, false
		t.unwatch()
	}
}

// lead begins or goes on with t, after its lease was confirmed. It fails if the lease
// would not outlast the elector.
func (l *Lock) lead(t *term, r resourcelock.LeaderElectionRecord) error {
	if left := time.Until(t.lease.Deadline()) - l.o.Notice; left < l.o.leadsOn() {
		return fmt.Errorf("lock %q: the store answered too late: the lease can be trusted for %v, and the elector may lead on for %v", l.mutex.Name(), left, l.o.leadsOn())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	t.record, t.failing = r, false
	if !t.leading {
		t.leading = true
		t.unwatch = context.AfterFunc(t.lease.Context(), func() { l.lost(t.lease) })
	}
	l.term = t
	return nil
}

func (l *Lock) lost(lease *leasehold.Lease) {
	if err := lease.Err(); l.o.Lost != nil && errors.Is(err, leasehold.ErrLost) {
		l.o.Lost(err)
	}
}
