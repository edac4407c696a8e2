package leasehold

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// Tick says when a scheduled job is due, for Once. Machines that start the job at
// about the same time, by clocks that differ, mean the same tick: the multiple of Every
// that is nearest to the time on their clock. With Every of an hour, 11:59:59.9 and
// 12:00:00.1 are both the tick of 12:00.
type Tick struct {
	// Every is the period of the job. Ticks are counted as time.Time.Round does, so
	// those of an hour begin with the hour, and those of a day at midnight UTC. All
	// machines need the same Every. It is required.
	Every time.Duration
	// LockAtMostFor bounds a run: after it the context of the function ends, and the
	// next tick can run. A machine that dies holds up the next tick for one TTL only.
	// Default: no bound.
	LockAtMostFor time.Duration
	// LockAtLeastFor is how long the store remembers that the tick has run, counted from
	// the start of the run, however short that is. The clocks of two machines may
	// differ by as much as it is longer than Every, so it cannot be shorter.
	// Default: twice Every.
	LockAtLeastFor time.Duration
	// TTL, Purpose and Require are as in LockOptions. With Require, what the store
	// remembers of the tick survives what that class survives, for all of
	// LockAtLeastFor: a store whose longest TTL is shorter is refused.
	TTL     time.Duration
	Purpose string
	Require store.Class
	// Notice is as in LockOptions.
	Notice time.Duration

	now func() time.Time // for tests; nil: time.Now
}

// Once calls fn if the job's present tick has not been run, on this machine or on
// another, and reports whether it did. It blocks while fn runs, and does not wait for
// others. It is safe for concurrent use.
//
// A tick is run at most once: the store records the run before fn is called, and
// remembers it for LockAtLeastFor. So a run that crashed is not repeated, a machine that
// comes late finds the tick taken, and a tick may be missed altogether, for example if a
// machine dies between the two steps.
//
// While fn runs it holds the mutex called job, which is renewed. So no two runs of a job
// overlap, and l.Token rises from run to run. This holds also if Once is called with the
// context of a run, or of a lease of that mutex: it finds the job running. The context of fn ends as that of Do does,
// and after LockAtMostFor.
//
// If fn was called, the error is as that of Do. Otherwise the error is nil if the tick
// has been run already. It matches ErrBusy if another run of the job goes on, ErrLost
// if the tick was over when the store's answers arrived, ErrInvalid, also if the store
// cannot keep a lock for LockAtLeastFor, or what Try returns.
func (c *Client) Once(ctx context.Context, job string, t Tick, fn func(ctx context.Context, l *Lease) error) (ran bool, err error) {
	mustHave(ctx)
	record, err := t.record(ctx, c, job)
	if err != nil {
		return false, err
	}
	run := newLock(&c.queues, job, claim{noPass: true, anew: true}).With(LockOptions{TTL: t.TTL, MaxHold: t.LockAtMostFor, Notice: t.Notice, Purpose: t.Purpose, Require: t.Require})
	lease, err := c.wait(ctx, &run.r, 1, true)
	if errors.Is(err, ErrBusy) {
		if st, e := c.store.Inspect(ctx, record.Name); e == nil && st.Held {
			return false, nil // it runs now
		}
	}
	if err != nil {
		return false, err
	}
	err = run.during(ctx, lease, func(ctx context.Context, l *Lease) error {
		taken, err := t.take(ctx, c, job, record)
		if err != nil || !taken {
			return err
		}
		ran = true
		return fn(ctx, l)
	})
	return ran, err
}

// record returns the lock that stands for the present tick. Nobody renews or releases
// it, so it stays until its TTL is over, whatever becomes of this process.
//
// That a tick is run at most once rests on this. Say two machines took the same record,
// at times s1 < s2. The store kept it for LockAtLeastFor after s1, so s2 is later than
// s1 + LockAtLeastFor. Each machine checks that the tick is the present one before it asks
// for the record, and again when it has it. So at s1 and at s2 their clocks were within
// Every/2 of the tick, and thus within Every of each other. So the clocks differ by more
// than LockAtLeastFor - Every.
func (t Tick) record(ctx context.Context, c *Client, job string) (store.Lease, error) {
	if t.Every <= 0 {
		return store.Lease{}, invalid("job %q: a tick needs the period of the job: Every is %v", job, t.Every)
	}
	keep := t.LockAtLeastFor
	if keep == 0 {
		keep = 2 * t.Every
	}
	if keep < t.Every {
		return store.Lease{}, invalid("job %q: LockAtLeastFor is %v, shorter than the period of %v: a machine whose clock is behind could run the tick again", job, keep, t.Every)
	}
	caps := c.store.Caps()
	var trace string
	if c.trace != nil {
		trace = c.trace(ctx)
	}
	r := store.Lease{
		Name:    t.name(job),
		Owner:   store.NewOwner(),
		TTL:     max(keep, caps.MinTTL, store.MinTTL),
		Meta:    c.describer.describe(t.Purpose, trace, 0),
		Require: t.Require,
	}
	if err := r.Check(caps); err != nil {
		return r, fmt.Errorf("job %q: the store cannot remember for %v that a tick has run: %w", job, keep, err)
	}
	return r, nil
}

// take takes the record, and reports whether this call did. It is an error if the tick
// is over by then: others may have forgotten it.
func (t Tick) take(ctx context.Context, c *Client, job string, record store.Lease) (bool, error) {
	if !tickRecorded {
		return true, nil
	}
	_, err := c.store.Acquire(ctx, store.AcquireRequest{Lease: record})
	switch {
	case errors.Is(err, ErrBusy):
		return false, nil
	case err != nil:
		return false, err
	case record.Name != t.name(job) && lateRunRefused:
		return false, &LostError{Name: record.Name, Cause: LostLateGrant, Reason: "the tick was over when the answer of the store arrived"}
	}
	return true, nil
}

// name returns the name of the record of the tick that is nearest to now, by this
// machine's clock.
func (t Tick) name(job string) string {
	now := t.now
	if now == nil {
		now = time.Now
	}
	return job + "@" + now().Round(t.Every).UTC().Format(time.RFC3339Nano)
}
