package leasehold

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// Tick says when a scheduled job is due, for Once. Machines that start the job at
// about the same time, by clocks that differ, mean the same tick: the multiple of Every
// that is nearest to the time on their clock. With Every of an hour, 11:59:59.9 and
// 12:00:00.1 are both the tick of 12:00.
//
// So a run that is late by more than half of Every takes the next tick, which is then skipped
// when it is due: OnSkip is told. If runs can be so late, or are due between two ticks, as those
// at noon with Every of a day, set Offset.
//
// All machines need the same Every, Offset and MinHold.
type Tick struct {
	// Every is the period of the job. Ticks are counted as time.Time.Round does, so
	// those of an hour begin with the hour, and those of a day at midnight UTC. It is
	// required.
	Every time.Duration
	// Offset is how much later the ticks are: with Every of a day and an Offset of 3.5 hours
	// they are at 3:30 UTC, and all runs from 15:30 to 15:30 are of one tick. From 0 to less
	// than Every.
	Offset time.Duration
	// MaxHold bounds a run: after it the context of the function ends, and the
	// next tick can run. A machine that dies holds up the next tick for one TTL only.
	// Default: no bound.
	MaxHold time.Duration
	// MinHold is the least time that the tick stays taken, counted from the start of the
	// run, however short that is: so long the store remembers that it has run. The clocks of two machines may
	// differ by as much as it is longer than Every, so it cannot be shorter.
	// Default: twice Every.
	MinHold time.Duration
	// TTL, Purpose and Require are as in LockOptions. With Require, what the store
	// remembers of the tick survives what that class survives, for all of
	// MinHold: a store whose longest TTL is shorter is refused.
	TTL     time.Duration
	Purpose string
	Require store.Class
	// Notice is as in LockOptions.
	Notice time.Duration
	// OnSkip is called, before Once returns, if the tick has been run already. It says by
	// which machine, and when. It must not block, since the mutex of the job may be held
	// meanwhile. Nil: nobody is told.
	OnSkip func(Skip)

	now func() time.Time // for tests; nil: time.Now
}

// Skip says why Once did not call its function: the tick has been run already. See Tick.OnSkip.
type Skip struct {
	Job  string
	Tick time.Time
	// By is the process that runs the job or ran it. Its Since is when the run began, by the
	// clock of its machine.
	By Holder
	// Running reports that the run goes on.
	Running bool
}

// Once calls fn if the job's present tick has not been run, on this machine or on
// another, and reports whether it did. It blocks while fn runs, and does not wait for
// others. It is safe for concurrent use.
//
// A tick is run at most once: the store records the run before fn is called, and
// remembers it for MinHold. So a run that crashed is not repeated, a machine that
// comes late finds the tick taken, and a tick may be missed altogether, for example if a
// machine dies between the two steps. The records of a job have a few names, such as
// "backup@1h0m0s/3", which are used again and again.
//
// While fn runs it holds the mutex called job, which is renewed. So no two runs of a job
// overlap, and l.Token rises from run to run. This holds also if Once is called with the
// context of a run, or of a lease of that mutex: it finds the job running. The context of fn ends as that of Do does,
// and after MaxHold.
//
// If fn was called, the error is as that of Do. Otherwise the error is nil if the tick
// has been run already. It matches ErrBusy if another run of the job goes on, ErrLost
// if the tick was over when the store's answers arrived, ErrInvalid, also if the store
// cannot keep a lock for MinHold, or what Try returns.
func (c *Client) Once(ctx context.Context, job string, t Tick, fn func(ctx context.Context, l *Lease) error) (ran bool, err error) {
	mustHave(ctx)
	tick, record, err := t.record(ctx, c, job)
	if err != nil {
		return false, err
	}
	skip := func(by Holder, running bool) {
		if t.OnSkip != nil {
			t.OnSkip(Skip{job, tick, by, running})
		}
	}
	run := (&Lock{c: c, name: job, take: claim{anew: true}}).With(LockOptions{TTL: t.TTL, MaxHold: t.MaxHold, Notice: t.Notice, Purpose: t.Purpose, Require: t.Require})
	lease, err := run.wait(ctx, 1, true)
	if errors.Is(err, ErrBusy) {
		if st, e := c.store.Inspect(ctx, record.Name); e == nil && st.Held {
			skip(st.Holder, true)
			return false, nil
		}
	}
	if err != nil {
		return false, err
	}
	err = run.during(ctx, lease, func(ctx context.Context, l *Lease) error {
		err := t.take(ctx, c, tick, record)
		var before *BusyError
		switch {
		case errors.As(err, &before):
			skip(before.Holder, false)
			return nil
		case err != nil:
			return err
		}
		ran = true
		return fn(ctx, l)
	})
	return ran, err
}

// record returns the present tick and the lock that stands for it. Nobody renews or releases
// the lock, so it stays until its TTL is over, whatever becomes of this process.
//
// That a tick is run at most once rests on this. Say two machines took the same record,
// at times s1 < s2. The store kept it for MinHold after s1, so s2 is later than
// s1 + MinHold. Each machine checks that the tick is the present one before it asks
// for the record, and again when it has it. So at s1 and at s2 their clocks were within
// Every/2 of the tick, and thus within Every of each other. So the clocks differ by more
// than MinHold - Every.
func (t Tick) record(ctx context.Context, c *Client, job string) (time.Time, store.Lease, error) {
	var none time.Time
	if t.Every <= 0 {
		return none, store.Lease{}, invalid("job %q: a tick needs the period of the job: Every is %v", job, t.Every)
	}
	if t.Offset < 0 || t.Offset >= t.Every {
		return none, store.Lease{}, invalid("job %q: Offset is %v: it must be 0 or more, and less than the period of %v", job, t.Offset, t.Every)
	}
	keep := t.MinHold
	if keep == 0 {
		keep = 2 * t.Every
	}
	if keep < t.Every {
		return none, store.Lease{}, invalid("job %q: MinHold is %v, shorter than the period of %v: a machine whose clock is behind could run the tick again", job, keep, t.Every)
	}
	caps := c.store.Caps()
	var trace string
	if c.trace != nil {
		trace = c.trace(ctx)
	}
	tick := t.present()
	r := store.Lease{
		Name:    t.name(job, tick, keep),
		Owner:   store.NewOwner(),
		TTL:     max(keep, caps.MinTTL, store.MinTTL),
		Meta:    c.queues.Describe(t.Purpose, trace, false),
		Require: t.Require,
	}
	if err := r.Check(caps); err != nil {
		return none, r, fmt.Errorf("job %q: the store cannot remember for %v that a tick has run: %w", job, keep, err)
	}
	return tick, r, nil
}

// take takes the record of tick. The error matches ErrBusy if somebody has taken it before, and
// ErrLost if the tick is over by now: others may have forgotten it.
func (t Tick) take(ctx context.Context, c *Client, tick time.Time, record store.Lease) error {
	if !tickRecorded {
		return nil
	}
	if _, err := c.store.Acquire(ctx, store.AcquireRequest{Lease: record}); err != nil {
		return err
	}
	if !t.present().Equal(tick) && lateRunRefused {
		return &LostError{Name: record.Name, Cause: LostLateGrant, Reason: "the tick was over when the answer of the store arrived"}
	}
	return nil
}

// present returns the tick that is nearest to now, by this machine's clock.
func (t Tick) present() time.Time {
	now := t.now
	if now == nil {
		now = time.Now
	}
	return now().UTC().Add(-t.Offset).Round(t.Every).Add(t.Offset)
}

// name returns the name of the record of tick, which the store keeps for that long.
//
// Stores remember something of each name for a day or so, above all its last token. So
// names are used again: ticks n and n + count have one name. The record of n must be over when
// n + count is run. Clocks differ by keep - Every at most, so the second run is at least
// count*Every - keep after the first. With a count of 2*keep/Every + 1 or more, that is longer
// than keep by one period. The count is a power of two, so that few changes of MinHold
// change it.
func (t Tick) name(job string, tick time.Time, keep time.Duration) string {
	count := int64(1) << bits.Len64(uint64(keep/t.Every)*2+2)
	n := int64(tick.Add(-t.Offset).Sub(time.Unix(0, 0).UTC().Round(t.Every)) / t.Every)
	return fmt.Sprintf("%s@%v/%d", job, t.Every, (n%count+count)%count)
}
