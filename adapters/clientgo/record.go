package clientgo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/leasehold-dev/leasehold"
)

// Get returns the record of the leader. While the elector leads, it is the record that it
// wrote, and Get does not block; otherwise Get blocks for the store's answer. The error is
// that of an object which is not found if nobody leads. If the elector has lost the lease
// and has not stopped leading yet, the error matches leasehold.ErrLost: the elector must
// stop before it contends again, or it would not notice that another may have led.
func (l *Lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if record, err := l.own(); record != nil || err != nil {
		return raw(record, err)
	}
	leader, err := l.election.Leader(ctx)
	switch {
	case err != nil:
		return nil, nil, err
	case leader.Vacant():
		return nil, nil, apierrors.NewNotFound(resource, l.mutex.Name())
	}
	return raw(l.foreign(leader), nil)
}

// resource is what errors call a lock.
var resource = schema.GroupResource{Group: "leasehold", Resource: "locks"}

// own returns the record that the elector wrote, if its lease is held.
func (l *Lock) own() (*resourcelock.LeaderElectionRecord, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.term == nil {
		return nil, nil
	}
	switch err := l.term.lease.Err(); {
	case err == nil:
		record := l.term.record
		return &record, nil
	case l.term.leading:
		return nil, fmt.Errorf("lock %q: this candidate has to stop leading before it contends again: %w", l.mutex.Name(), err)
	}
	l.term = nil
	return nil, nil
}

// foreign returns the record of another leader. Its duration only says that the lease was
// held when the store answered: it is the store that ends it.
func (l *Lock) foreign(leader leasehold.Leader) *resourcelock.LeaderElectionRecord {
	identity := leader.Holder.Purpose
	if identity == "" {
		identity = leader.Holder.String()
	}
	if identity == l.o.Identity { // or the elector would take it for itself
		identity = fmt.Sprintf("%s (another, %s)", identity, leader.Holder)
	}
	return &resourcelock.LeaderElectionRecord{
		HolderIdentity:       identity,
		LeaseDurationSeconds: int(leader.ExpiresIn/time.Second) + 1,
		AcquireTime:          metav1.NewTime(leader.Since),
		RenewTime:            metav1.Now(),
	}
}

// raw returns the record in two forms. The second is never the same twice: an elector
// contends for a lease if its record has not changed for some time, and here it is the
// store that says whether the lease is held.
func raw(record *resourcelock.LeaderElectionRecord, err error) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if err != nil {
		return nil, nil, err
	}
	text, err := json.Marshal(struct {
		*resourcelock.LeaderElectionRecord
		Seen time.Time `json:"seen"`
	}{record, time.Now()})
	return record, text, err
}

// Create makes one attempt to acquire the lease, and blocks for the store's answer. The
// error is that of an object which exists already, and matches leasehold.ErrBusy, if
// another candidate leads.
func (l *Lock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if err := l.check(r); err != nil {
		return err
	}
	lease, err := l.mutex.Try(ctx)
	switch {
	case errors.Is(err, leasehold.ErrBusy):
		return fmt.Errorf("%w: %w", apierrors.NewAlreadyExists(resource, l.mutex.Name()), err)
	case err != nil:
		return err
	}
	if err := l.lead(&term{lease: lease}, r); err != nil {
		return errors.Join(err, lease.Release(ctx))
	}
	return nil
}

// check returns what is wrong with a record that this candidate wants to write.
func (l *Lock) check(r resourcelock.LeaderElectionRecord) error {
	switch {
	case r.HolderIdentity != l.o.Identity:
		return fmt.Errorf("%w: lock %q is that of candidate %q and cannot be written for %q", leasehold.ErrInvalid, l.mutex.Name(), l.o.Identity, r.HolderIdentity)
	case r.LeaseDurationSeconds != int(l.o.LeaseDuration/time.Second):
		return fmt.Errorf("%w: the LeaseDuration of the elector is %d s, and that of lock %q is %v", leasehold.ErrInvalid, r.LeaseDurationSeconds, l.mutex.Name(), l.o.LeaseDuration)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.misfit
}

// Update renews the lease of this candidate, or releases it if the record names no holder,
// and blocks for the store's answer. If this candidate has no lease, Update is Create.
//
// A renewal fails if the lease would not outlast the elector, should no further renewal
// succeed, even if the store did renew it. A release fails if the last renewal did: the
// elector is stopping because of RenewDeadline then, has not told what it runs, and another
// candidate must not lead yet. The lease ends by its TTL.
func (l *Lock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	t := l.term
	leading := t != nil && t.leading
	failing := leading && t.failing
	l.mu.Unlock()
	switch {
	case r.HolderIdentity == "" && t == nil:
		return nil
	case r.HolderIdentity == "" && failing:
		return fmt.Errorf("lock %q: not released, because the functions of the elector still run: the lease ends by its TTL", l.mutex.Name())
	case r.HolderIdentity == "":
		return t.lease.Release(ctx)
	case t == nil:
		return l.Create(ctx, r)
	}
	if leading {
		l.compare(ctx)
	}
	err := l.check(r)
	if err == nil {
		err = t.lease.Extend(ctx)
	}
	if err == nil {
		err = l.lead(t, r)
	}
	if err != nil && !errors.Is(ctx.Err(), context.Canceled) { // then the elector was stopped
		l.mu.Lock()
		t.failing = true
		l.mu.Unlock()
	}
	return err
}

// compare compares RenewDeadline with that of the elector, which bounds its updates by it.
// With a longer one the elector would lead for longer than the lease lasts, so the lock
// refuses it from then on.
func (l *Lock) compare(ctx context.Context) {
	end, ok := ctx.Deadline()
	if !ok || time.Until(end) <= l.o.RenewDeadline {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.misfit = fmt.Errorf("%w: the RenewDeadline of the elector is longer than that of lock %q, %v", leasehold.ErrInvalid, l.mutex.Name(), l.o.RenewDeadline)
}
