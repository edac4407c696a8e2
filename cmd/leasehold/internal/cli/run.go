package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/help"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/runner"
	"github.com/leasehold-dev/leasehold/store"
)

func runCommand(p *program) *cobra.Command {
	o := runFlags{ttl: leasehold.DefaultTTL, busyCode: codeBusy}
	c := &cobra.Command{
		Use:   "run NAME [flags] -- command [args...]",
		Short: "Run a command while holding a lock",
		Long: `Waits for the lock NAME, runs the command, and releases the lock when the command ends.
No shell is involved. The lease is renewed while the command runs. If it is lost, the
command is stopped before anyone else can have the lock.

Exit codes: that of the command; 123 if the lock was lost, 124 if somebody else holds it,
125 if leasehold itself failed, 126 and 127 if the command cannot be executed or was not
found, 128+N if signal N ended the command or the wait.`,
		Example: `  leasehold run backup -- tar czf /srv/backup.tgz /home
  leasehold run report --try -E 0 -- ./report.sh     # do nothing if it runs
  leasehold run invoices --once-per 1h --max-hold 30m -E 0 -- ./send-invoices.sh
  leasehold run deploy --wait 10m --ttl 1m --grace 5s --store redis://a,b,c -- make deploy
  leasehold run index --shared -- ./search.sh        # beside others, not beside the next
  leasehold run index --exclusive -- ./rebuild.sh
  leasehold run backup --textfile /var/lib/prometheus/node-exporter -- ./backup.sh
  leasehold run worker --permits 3 -- sh -c './work --shard "$LEASEHOLD_SLOT"'
  leasehold run accounts --also ledger -- ./close-the-month.sh`,
		ValidArgsFunction: p.completeNameThenCommand,
		RunE: func(c *cobra.Command, args []string) error {
			err := p.run(c, o, args)
			writeTextfile(p, err)
			return err
		},
	}
	help.SetLong(c, help.Run)
	o.add(c.Flags())
	o.addAlso(p, c)
	completeClasses(c)
	c.Flags().StringVar(&p.report.Dir, "textfile", "", "write metrics of the run to a file in `DIR`, for the textfile collector of\nPrometheus' node_exporter")
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
	if err := p.report.Check(); err != nil {
		return err
	}
	// Before the lock: what cannot be run needs none.
	path, err := runner.Resolve(command[0])
	if err != nil {
		return startFailed(err)
	}
	cmd := runner.Command{Path: path, Args: command, Stdin: p.stdin, Stdout: p.stdout, Stderr: p.stderr}
	p.report.Lock, p.report.Began = name, time.Now()
	if o.oncePer > 0 {
		return runOnce(p, c, o, name, lock, budget, cmd)
	}
	sigs := listen()
	st, l, err := p.acquire(c, o, sigs, name, lock)
	if err != nil {
		return err
	}
	cmd.Tether = tether(st)
	until := time.Now().Add(o.minHold)
	outcome := runUnder(p, sigs, l, budget, cmd, o.permits > 0)
	sigs.tellJob(&outcome)
	if !outcome.Started {
		until = time.Time{} // nothing ran that others must not repeat
	}
	code := p.releaseAndClose(sigs, st, l, until, outcome.Code)
	sigs.stop()
	outcome.Reap()
	if _, ok := outcome.Err.(*runner.StartError); ok {
		return startFailed(outcome.Err)
	}
	return endOf(outcome, code)
}

// writeTextfile reports a run that ended with err, if that was asked for and it came to a
// wait for the lock.
func writeTextfile(p *program, err error) {
	if p.report.Dir == "" || p.report.Began.IsZero() {
		return
	}
	if err := p.report.Write(codeOf(err), time.Now()); err != nil {
		p.voice.Note("warning: the metrics were not written: %v", err)
	}
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
		err = usage(c, `put "--" before the command, as in: %s NAME -- command args`, c.CommandPath())
	case dash == 0:
		err = usage(c, `give the name of a lock before the "--"`)
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

// environ returns the command's environment. numbered says that l has a slot.
func environ(l lease, numbered bool) []string {
	all := l.each
	owners := ownersAbove(os.Getenv)
	var tokens []string
	for _, one := range slices.Backward(all) { // NAME's last
		owners = append(owners, one.Owner())
	}
	for _, one := range all {
		tokens = append(tokens, one.Token().String())
	}
	add := []string{
		nameVar + "=" + all[0].Name(),
		tokenVar + "=" + tokens[0],
		tokensVar + "=" + strings.Join(tokens, " "),
		ownerVar + "=" + all[0].Owner(),
		ownersVar + "=" + strings.Join(owners, " "),
		deadlineVar + "=" + l.Deadline().UTC().Format(time.RFC3339Nano),
	}
	if numbered {
		return runner.Environ(os.Environ(), append(add, slotVar+"="+strconv.Itoa(all[0].Slot()))...)
	}
	// One in our own environment is of another lock.
	return slices.DeleteFunc(runner.Environ(os.Environ(), add...), func(kv string) bool { return strings.HasPrefix(kv, slotVar+"=") })
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
