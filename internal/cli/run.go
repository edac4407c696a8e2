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
	"github.com/leasehold-dev/leasehold/internal/runner"
	"github.com/leasehold-dev/leasehold/store"
)

func (p *program) runCommand() *cobra.Command {
	o := runFlags{ttl: leasehold.DefaultTTL, busyCode: codeBusy}
	c := &cobra.Command{
		Use:   "run NAME [flags] -- command [args...]",
		Short: "Run a command while holding a lock",
		Long: `Waits for the lock NAME, runs the command, and releases the lock when the
command ends. No shell is involved. Input, output, terminal and signals reach the
command as if it had been started without leasehold.

A store that can not be reached at the start is an error at once. One that stops
answering while the lock is waited for has one TTL to answer again; then leasehold
exits with 125, even if --wait is not over. A longer --ttl outlasts a longer
outage; beyond that, run leasehold again after a pause. Quarantine of servers is
waited out, within --wait.

The lease on the lock is renewed for as long as the command runs. Should it be
lost, because the store can not be reached for too long, the command is told
(SIGTERM) and, when its grace is over, killed with its whole process group
(SIGKILL), before anybody else can get the lock. While a job is stopped (Ctrl-Z)
nothing is renewed; one whose lease ended meanwhile is killed when it goes on.

The lock is released when the command itself ends. What it leaves running in the
background goes on without the lock. Processes that leave its process group, as
daemons do, are not killed with it. On Linux the command is killed when leasehold
is; elsewhere, and whatever it has started, it then goes on unprotected.

The command finds in its environment
  LEASEHOLD_NAME      the name of the lock
  LEASEHOLD_TOKEN     the fencing token, larger for every later grant: a resource
                      that refuses smaller ones is safe from late writes
  LEASEHOLD_OWNER     the owner value of this lease
  LEASEHOLD_DEADLINE  the end of its validity as known at the start (RFC 3339);
                      each renewal moves it on

A command that runs under a lock and asks for the same one again is told so, with
125, instead of waiting for itself.

Exit codes: the command's own, or
  123    the lock was lost; the command was stopped, or had just ended
  124    somebody else has the lock (with --try, or when --wait is over); see -E
  125    trouble of leasehold's own: wrong usage, store out of reach, a lock that
         the command around this one holds
  126    the command can not be run
  127    the command was not found
  128+N  the command, or the wait for the lock, was ended by signal N`,
		Example: `  leasehold run backup -- tar czf /srv/backup.tgz /home
  leasehold run report --try -E 0 -- ./report.sh     # somebody at it is fine
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

// run is the whole of "leasehold run".
func (p *program) run(c *cobra.Command, o runFlags, args []string) error {
	name, command, err := splitArgs(c, args)
	if err != nil {
		return err
	}
	lock, budget, err := o.settle(c, command[0])
	if err != nil {
		return err
	}
	// Before the lock: what can not be run needs none.
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

// splitArgs takes NAME -- command args apart.
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

// environ is what the command finds in its environment.
func environ(l *leasehold.Lease) []string {
	return runner.Environ(os.Environ(),
		nameVar+"="+l.Name(),
		tokenVar+"="+l.Token().String(),
		ownerVar+"="+l.Owner(),
		ownersVar+"="+strings.Join(append(ownersAbove(os.Getenv), l.Owner()), " "),
		deadlineVar+"="+l.Deadline().UTC().Format(time.RFC3339Nano))
}

// purposeOf is what is shown to others who ask for the lock, unless the user
// says it: the command's name, and nothing of its arguments, which may be secret.
func purposeOf(command string) string { return filepath.Base(command) }

// busyError is what there is to say when somebody else kept the lock.
func busyError(e *leasehold.BusyError, after string) error {
	plain := *e
	plain.Err = nil // the end of our own wait
	return fmt.Errorf("%w%s", &plain, after)
}
