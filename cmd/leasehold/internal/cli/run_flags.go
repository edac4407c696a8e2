package cli

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/runner"
	"github.com/leasehold-dev/leasehold/store"
)

// runFlags are the flags of "leasehold run".
type runFlags struct {
	kindFlags
	ttl, wait, grace, minHold, maxHold, oncePer, onceOffset time.Duration
	try                                                     bool
	purpose, require                                        string
	busyCode                                                int
}

func (o *runFlags) add(f *pflag.FlagSet) {
	f.DurationVar(&o.ttl, "ttl", o.ttl, "how long the lock stays taken if this machine dies: a `TIME` such as\n30s. It does not limit how long the command runs")
	o.addStopping(f)
	f.DurationVar(&o.minHold, "min-hold", 0, "keep the lock for at least that `TIME`, even if the command ends\nearlier, so that machines whose clocks differ do not run a job twice.\nA command that could not be started keeps nothing")
	f.DurationVar(&o.maxHold, "max-hold", 0, "stop the command so that it has ended after that `TIME`, as if the\nlock were lost")
	f.DurationVar(&o.oncePer, "once-per", 0, "run the command once per `PERIOD`, on one of all machines: see above")
	f.DurationVar(&o.onceOffset, "once-offset", 0, "ticks are that `TIME` later, with --once-per: such as 3h30m for 03:30\nUTC with --once-per 24h")
	o.addDescription(f)
	o.addWaiting(f)
	o.kindFlags.add(f)
}

// addStopping adds the flag that says how to stop a command.
func (o *runFlags) addStopping(f *pflag.FlagSet) {
	f.DurationVar(&o.grace, "grace", 0, "`TIME` between SIGTERM and SIGKILL when the lock is lost; with 0 the\ncommand is killed at once (default: a tenth of the TTL, at most 10s)")
}

// addDescription adds the flags that every lock of a command has.
func (o *runFlags) addDescription(f *pflag.FlagSet) {
	f.StringVar(&o.purpose, "purpose", "", "`TEXT` shown to others who want the lock (default: the command's name)")
	f.StringVar(&o.require, "require", "", "refuse a store with a weaker guarantee than `CLASS`: crash-safe (a server\ncrash cannot give the lock to two holders) or consensus (a majority of\nservers agrees on each grant: etcd or ZooKeeper with three or more)")
}

// addWaiting adds the flags that say how to acquire a lock.
func (o *runFlags) addWaiting(f *pflag.FlagSet) {
	f.DurationVar(&o.wait, "wait", 0, "give up after waiting for that `TIME`; 0 is --try (default: wait\nforever)")
	f.BoolVar(&o.try, "try", false, "do not wait if the lock is held")
	f.IntVarP(&o.busyCode, "conflict-exit-code", "E", o.busyCode, "exit with code `N` if someone else holds the lock")
}

// settleWaiting checks the flags of addWaiting.
func (o *runFlags) settleWaiting(c *cobra.Command) (require store.Class, err error) {
	if o.require != "" {
		if require, err = store.ParseClass(o.require); err != nil {
			err = fmt.Errorf("--require: %w", err)
		}
	}
	switch {
	case err != nil:
	case o.try && c.Flags().Changed("wait"):
		err = errors.New("--try and --wait exclude each other")
	case o.wait < 0:
		err = negative("wait", o.wait)
	case o.busyCode < 0 || o.busyCode > 255:
		err = fmt.Errorf("--conflict-exit-code %d is not an exit code: give 0 to 255", o.busyCode)
	}
	o.try = o.try || c.Flags().Changed("wait") && o.wait == 0
	return require, err
}

// negative is the error about a time that is negative.
func negative(flag string, d time.Duration) error {
	return fmt.Errorf("--%s %v: a time cannot be negative", flag, d)
}

// leastTTL is the shortest TTL in which a process can still be stopped in time.
const leastTTL = 100 * time.Millisecond

// settle checks the flags and turns them into lock options and the time budget
// for stopping the command.
func (o *runFlags) settle(c *cobra.Command, command string) (leasehold.LockOptions, runner.Budget, error) {
	limit := o.ttl // within which the command must be stopped
	if o.maxHold > 0 {
		limit = min(limit, o.maxHold)
	}
	grace := o.grace
	if !c.Flags().Changed("grace") {
		grace = runner.DefaultGrace(limit)
	}
	purpose := o.purpose
	if !c.Flags().Changed("purpose") {
		purpose = purposeOf(command)
	}
	require, err := o.settleWaiting(c)
	if err == nil {
		err = cmp.Or(o.kindFlags.check(c), o.checkOnce(c))
	}
	switch {
	case err != nil:
	case o.ttl < 0:
		err = negative("ttl", o.ttl)
	case o.ttl < leastTTL:
		err = fmt.Errorf("--ttl %v is too short to stop a command in time: the minimum is %v", o.ttl, leastTTL)
	case grace < 0:
		err = negative("grace", grace)
	case o.minHold < 0:
		err = negative("min-hold", o.minHold)
	case o.maxHold < 0:
		err = negative("max-hold", o.maxHold)
	case c.Flags().Changed("max-hold") && o.maxHold < leastTTL:
		err = fmt.Errorf("--max-hold %v is too short to stop a command in time: the minimum is %v", o.maxHold, leastTTL)
	case grace > o.ttl/2:
		err = fmt.Errorf("--grace %v is more than half of --ttl %v: a lost lock is noticed too late to leave the command that long", grace, o.ttl)
	case o.maxHold > 0 && grace > o.maxHold/2:
		err = fmt.Errorf("--grace %v is more than half of --max-hold %v", grace, o.maxHold)
	case o.maxHold > 0 && o.minHold > o.maxHold && o.oncePer == 0:
		err = fmt.Errorf("--min-hold %v is longer than --max-hold %v", o.minHold, o.maxHold)
	}
	if err != nil {
		return leasehold.LockOptions{}, runner.Budget{}, usage(c, "%w", err)
	}
	budget := runner.NewBudget(limit, grace)
	return leasehold.LockOptions{
		TTL: o.ttl, Notice: budget.Notice(), MinHold: o.minHold, MaxHold: o.maxHold, Purpose: purpose, Require: require,
	}, budget, nil
}
