package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/runner"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/voice"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/filestore"
	"github.com/spf13/cobra"
)

// checkOnce returns which flags do not go with --once-per.
func (o *runFlags) checkOnce(c *cobra.Command) error {
	if !c.Flags().Changed("once-per") {
		if c.Flags().Changed("once-offset") {
			return errors.New("--once-offset needs --once-per")
		}
		return nil
	}
	if o.oncePer <= 0 {
		return fmt.Errorf("--once-per %v: give the period of the job, such as 5m", o.oncePer)
	}
	if o.oncePer < leastTTL {
		return fmt.Errorf("--once-per %v is too short to be of use: the minimum is %v", o.oncePer, leastTTL)
	}
	if o.onceOffset < 0 || o.onceOffset >= o.oncePer {
		return fmt.Errorf("--once-offset %v: it must be 0 or more, and less than --once-per %v", o.onceOffset, o.oncePer)
	}
	for _, flag := range []string{"shared", "exclusive", "permits", "also", "wait"} {
		if c.Flags().Changed(flag) {
			return fmt.Errorf("--once-per and --%s exclude each other", flag)
		}
	}
	if o.minHold != 0 && o.minHold < o.oncePer {
		return fmt.Errorf("--min-hold %v is shorter than --once-per %v: a machine whose clock is behind could run the job again", o.minHold, o.oncePer)
	}
	return nil
}

// runOnce runs "leasehold run --once-per".
func runOnce(p *program, c *cobra.Command, o runFlags, name string, lock leasehold.LockOptions, budget runner.Budget, cmd runner.Command) error {
	sigs := listen()
	ctx, stop := sigs.during(context.Background())
	tick := leasehold.Tick{
		Every: o.oncePer, Offset: o.onceOffset, MaxHold: o.maxHold, MinHold: o.minHold, Notice: lock.Notice,
		TTL: o.ttl, Purpose: lock.Purpose, Require: lock.Require,
	}
	var before *leasehold.Skip
	tick.OnSkip = func(s leasehold.Skip) { before = &s }
	var outcome runner.Outcome
	ran := false
	st, err := p.openStore(ctx, c)
	if err == nil {
		ran, err = client(p, st).Once(ctx, name, tick, func(_ context.Context, l *leasehold.Lease) error {
			if sig := stop(); sig != 0 {
				outcome = runner.Outcome{Code: runner.SignalCode + int(sig), Signal: sig}
				return nil
			}
			cmd.Tether = tether(st)
			outcome = runUnder(p, sigs, single(l), budget, cmd, false)
			sigs.tellJob(&outcome)
			return nil
		})
		if closed := st.Close(); closed != nil {
			p.voice.Note("warning: closing the store: %v", closed)
		}
	}
	var busy *leasehold.BusyError
	switch {
	case ran:
		sigs.stop()
		return ended(p, outcome, err)
	case errors.As(err, &busy):
		stop()
		p.voice.Note("%v", busyError(busy, ": another run of the job goes on"))
		return &exitError{code: o.busyCode}
	}
	if sig := stop(); sig != 0 {
		return endedBy(sig)
	}
	if err == nil {
		if before != nil {
			p.voice.Note("%s", skipped(before, o.oncePer))
		}
		err = &exitError{code: o.busyCode}
	}
	return err
}

// skipped says why the command was not run.
func skipped(s *leasehold.Skip, per time.Duration) string {
	text := fmt.Sprintf("job %q has been run in this tick already, that of %s, by %v", s.Job, s.Tick.Local().Format(time.RFC3339), s.By)
	if !s.By.Since.IsZero() {
		text += " at " + s.By.Since.Local().Format(time.RFC3339)
	}
	if s.Running {
		text += ", and still runs"
	}
	return text + ": it runs once per " + voice.Short(per)
}

// ended returns the error to exit with, after a command that ran under a lease. released
// is the error of the release.
func ended(p *program, o runner.Outcome, released error) error {
	o.Reap()
	if _, ok := o.Err.(*runner.StartError); ok {
		return startFailed(o.Err)
	}
	switch {
	case o.Err == nil && errors.Is(released, leasehold.ErrLost):
		return &exitError{code: runner.CodeLost, err: released}
	case o.Err == nil && released != nil:
		p.voice.Note("warning: the lock may stay taken for its TTL: %s", p.voice.Text(released))
	}
	return endOf(o, o.Code)
}

// tether returns what a command inherits from the store, or nil. It lives as long as this process.
func tether(st *store.Store) *os.File {
	f, _ := filestore.Tether(st) // without one, the lease of a process that has ended lasts for its TTL
	return f
}

// runUnder runs cmd under a lease.
func runUnder(p *program, sigs *signals, l lease, budget runner.Budget, cmd runner.Command, numbered bool) runner.Outcome {
	p.voice.Flush(200 * time.Millisecond) // what was said about waiting comes before what the command says
	cmd.Env = environ(l, numbered)
	began := time.Now()
	outcome := runner.Run(cmd, runner.Config{Lease: l, Budget: budget, Signals: sigs.ch, Report: func(msg string) { p.voice.Error("%s", msg) }})
	if outcome.Started {
		p.report.Started, p.report.Ended = began, time.Now()
	}
	return outcome
}
