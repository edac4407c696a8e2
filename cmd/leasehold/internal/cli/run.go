package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/runner"
	"github.com/leasehold-dev/leasehold/store"
)

func (p *program) runCommand() *cobra.Command {
	o := runFlags{ttl: leasehold.DefaultTTL, busyCode: codeBusy}
	c := &cobra.Command{
		Use:   "run NAME [flags] -- command [args...]",
		Short: "Run a command while holding a lock",
		Long: `Waits for the lock NAME, runs the command, and releases the lock when the command
ends. No shell is involved. Standard input and output, the terminal and signals
reach the command as if leasehold were not there. A NAME that begins with "-" is
preceded by a "--" of its own: leasehold run -- -x -- command.

If the store cannot be reached at the start, run fails at once. If it stops
answering while run waits for the lock, run keeps trying for one TTL and then exits
with 125, even before --wait is over. A longer --ttl survives a longer outage. If
servers are in quarantine, run waits until that is over, but not beyond --wait.

The lease is renewed while the command runs. If it is lost, for example because
the store cannot be reached for too long, the command gets SIGTERM, and SIGKILL
after --grace, together with its process group. This happens before anyone else
can get the lock. A stopped job (Ctrl-Z, SIGTSTP) renews nothing; if its lease has
ended, it is killed when it continues.

A guard process beside the command kills it, and its process group, if leasehold
is killed; on Linux also if leasehold is stopped (SIGSTOP) past the end of the
lease. There are three limits. Processes that leave the group, as daemons do, are not
killed with it. A command that changes to a user whom leasehold may not signal, as
sudo does, cannot be killed: leasehold says so and waits for it. On Windows there is
no guard. Processes that the command leaves in the background run on without the
lock.

All signals that can be caught are passed on, except SIGCHLD, SIGPIPE, SIGURG and
SIGPROF. While run waits for the lock, SIGHUP, SIGINT, SIGQUIT, SIGABRT, SIGALRM,
SIGTERM and SIGXCPU end the wait.

--min-hold keeps the lock after a command that ran. A signal to leasehold then
leaves the lock to the store, which keeps it for the rest of the time, or of the
TTL if that is longer. If the store keeps no lock for that long by itself (max_ttl),
it takes a second signal.

The command finds in its environment:
  LEASEHOLD_NAME      the name of the lock
  LEASEHOLD_TOKEN     the fencing token, which is larger for each later grant: a
                      resource that refuses smaller tokens refuses late writes
  LEASEHOLD_OWNER     the owner value of this lease
  LEASEHOLD_OWNERS    the owner values of all leases it runs under, this one last
  LEASEHOLD_DEADLINE  the end of the lease as known at the start (RFC 3339); each
                      renewal extends it

A command that waits for a lock it already runs under would wait forever: run
exits with 125 instead.

Exit codes: that of the command, or
  123    the lock was lost; the command was stopped, or had just ended
  124    the lock is held by someone else (with --try, or after --wait); see -E
  125    leasehold itself failed: wrong usage, the store cannot be reached, or the
         command already runs under the lock
  126    the command cannot be executed
  127    the command was not found
  128+N  the command, or the wait for the lock, was ended by signal N`,
		Example: `  leasehold run backup -- tar czf /srv/backup.tgz /home
  leasehold run report --try -E 0 -- ./report.sh     # do nothing if it runs
  leasehold run deploy --wait 10m --ttl 1m --grace 5s --store redis://a,b,c -- make deploy`,
		ValidArgsFunction: func(c *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveDefault // the command's business
			}
			return p.completeName(c, toComplete)
		},
		RunE: func(c *cobra.Command, args []string) error { return p.run(c, o, args) },
	}
	o.add(c.Flags())
	return c
}

// run runs "leasehold run".
func (p *program) run(c *cobra.Command, o runFlags, args []string) error {
	name, command, err := splitArgs(c, args)
	if err != nil {
		return err
	}
	lock, budget, err := o.settle(c, command[0])
	if err != nil {
		return err
	}
	// Before the lock: what cannot be run needs none.
	path, err := runner.Resolve(command[0])
	if err != nil {
		return startFailed(err)
	}
	sigs := listen()
	st, lease, err := p.acquire(c, o, sigs, name, lock)
	if err != nil {
		return err
	}
	until := time.Now().Add(o.minHold)
	p.voice.flush(200 * time.Millisecond) // what was said about waiting comes before what the command says
	outcome := runner.Run(
		runner.Command{Path: path, Args: command, Env: environ(lease), Stdin: p.stdin, Stdout: p.stdout, Stderr: p.stderr},
		runner.Config{Lease: lease, Budget: budget, Signals: sigs.ch, Report: func(msg string) { p.voice.error("%s", msg) }})
	if !outcome.Started {
		until = time.Time{} // nothing ran that others must not repeat
	}
	code := p.giveBack(sigs, st, lease, until, outcome.Code)
	outcome.Reap()
	if _, ok := outcome.Err.(*runner.StartError); ok {
		return startFailed(outcome.Err)
	}
	if code != 0 {
		return &exitError{code: code}
	}
	return nil
}

// splitArgs splits the arguments NAME -- command args.
func splitArgs(c *cobra.Command, args []string) (name string, command []string, err error) {
	dash := c.ArgsLenAtDash()
	if dash == 0 && len(args) > 1 && strings.HasPrefix(args[0], "-") && args[1] == "--" {
		// A NAME that begins with "-" has a "--" of its own before it.
		args, dash = slices.Delete(slices.Clone(args), 1, 2), 1
	}
	switch {
	case dash < 0:
		err = usage(c, `put "--" before the command, as in: leasehold run NAME -- command args`)
	case dash != 1:
		err = usage(c, `give the name of one lock before the "--", not %d`, dash)
	case len(args) == 1:
		err = usage(c, `there is no command after the "--"`)
	default:
		name, command = args[0], args[1:]
		err = store.CheckName(name)
	}
	return name, command, err
}

func startFailed(err error) error {
	return &exitError{code: err.(*runner.StartError).Code, err: err}
}

// environ returns the variables that are added to the command's environment.
func environ(l *leasehold.Lease) []string {
	return runner.Environ(os.Environ(),
		nameVar+"="+l.Name(),
		tokenVar+"="+l.Token().String(),
		ownerVar+"="+l.Owner(),
		ownersVar+"="+strings.Join(append(ownersAbove(os.Getenv), l.Owner()), " "),
		deadlineVar+"="+l.Deadline().UTC().Format(time.RFC3339Nano))
}

// purposeOf is the purpose that others see who want the lock, unless the user
// says it: the command's name, and nothing of its arguments, which may be secret.
func purposeOf(command string) string { return filepath.Base(command) }

// busyError returns the error if another owner kept the lock.
func busyError(e *leasehold.BusyError, after string) error {
	plain := *e
	plain.Err = nil // the end of our own wait
	return fmt.Errorf("%w%s", &plain, after)
}
