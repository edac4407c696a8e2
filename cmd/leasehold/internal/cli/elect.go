package cli

import (
	"context"
	"fmt"
	"sync"
	"syscall"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/runner"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/voice"
	"github.com/spf13/cobra"
)

func electCommand(p *program) *cobra.Command {
	o := runFlags{ttl: leasehold.DefaultTTL}
	c := &cobra.Command{
		Use:   "elect NAME [flags] -- command [args...]",
		Short: "Keep a command running while this machine leads",
		Long: `Makes this process a candidate in the election NAME. When it is elected, it starts the
command; when it loses, it stops the command before another candidate can lead, and
contends again. So of all machines that run the same "leasehold elect", one has the
command running. The lock NAME is a mutex that the leader holds, as "leasehold run"
does: "show" says who leads, and "watch" prints the changes.

If the command ends by itself, whatever its exit code, this candidate stops leading,
contends again after a pause, and starts the command again when it is elected. The
pause grows from 0.1 to 15 seconds while that goes on, and is short again after a term
of one --ttl. If the store cannot be reached, the candidate goes on trying.

The command gets SIGTERM when the lead is lost, and SIGKILL after --grace, together with
its process group; a guard process kills it if leasehold is killed. Input, output, the
terminal and its environment are as under "leasehold run"; the fencing token in
LEASEHOLD_TOKEN is larger in each later term.

Signals are passed on to the command while it runs. A signal that asks to end, such as
SIGTERM, ends the candidacy too: it resigns when the command has ended, so that the next
candidate leads at once. On a terminal Ctrl-C goes to the command, and ends the
candidacy if the command dies of it or exits with 130. SIGHUP is for the command: it
ends the candidacy if the command dies of it or exits with 129, or while no command runs
if leasehold was started on a terminal. Without a terminal it then does nothing.

Exit codes: that of the command if a signal ended the candidacy while it ran, otherwise
that signal, which leasehold dies of (128+N in a shell); 125 if leasehold itself failed
at the start; 126 and 127 if the command cannot be executed, or was not found.`,
		Example: `  leasehold elect scheduler -- ./scheduler --config prod.yaml
  leasehold elect cron --ttl 10s --store redis://a,b,c -- crond -n`,
		ValidArgsFunction: p.completeNameThenCommand,
		RunE:              func(c *cobra.Command, args []string) error { return elect(p, c, o, args) },
	}
	f := c.Flags()
	f.DurationVar(&o.ttl, "ttl", o.ttl, "how long nobody leads after the leader has died: a `TIME` such as 10s")
	o.addStopping(f)
	o.addDescription(f)
	completeClasses(c)
	return c
}

// elect runs "leasehold elect".
func elect(p *program, c *cobra.Command, o runFlags, args []string) error {
	name, command, err := splitArgs(c, args)
	if err != nil {
		return err
	}
	options, budget, err := o.settle(c, command[0])
	if err != nil {
		return err
	}
	path, err := runner.Resolve(command[0])
	if err != nil {
		return startFailed(err)
	}
	d := &candidate{
		p: p, name: name, budget: budget,
		cmd: runner.Command{Path: path, Args: command, Stdin: p.stdin, Stdout: p.stdout, Stderr: p.stderr},
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	d.signals.cancel = func() { cancel(nil) }
	d.signals.terminal = runner.HasTerminal()
	d.signals.unheard = func(sig syscall.Signal) {
		p.voice.Note("%v: no command runs that it could be passed on to; still a candidate of %q", sig, name)
	}
	go d.signals.relay(listen())
	st, err := p.openStore(ctx, c)
	if err == nil {
		d.cmd.Tether = tether(st)
		client := leasehold.New(st, &leasehold.Options{Logger: p.voice.ContendingLogger()})
		options.OnWait = func(reason error) {
			if nested(reason) {
				cancel(nestedError(name))
				return
			}
			d.because(reason)
		}
		err = client.Election(name).With(options).Run(ctx, d.lead)
		d.elected() // or given up
		if closed := st.Close(); closed != nil {
			p.voice.Note("warning: closing the store: %v", closed)
		}
	}
	sig := d.signals.ending()
	switch {
	case d.failed != nil:
		return d.failed
	case d.over:
		err = endOf(d.last, d.last.Code)
	case sig != 0:
		err = endedBy(sig)
	case err != nil && context.Cause(ctx) != nil && context.Cause(ctx) != ctx.Err():
		err = context.Cause(ctx)
	}
	return err
}

// candidate is one candidate of an election that runs a command.
type candidate struct {
	p       *program
	name    string
	budget  runner.Budget
	cmd     runner.Command
	signals relay
	waiting *voice.Waiting // while it contends and was told why

	// How the last command ended.
	failed error // it cannot be started
	over   bool  // and with it the candidacy
	last   runner.Outcome
}

// because reports why the candidate does not lead.
func (d *candidate) because(reason error) {
	if d.waiting == nil {
		d.waiting = voice.NewWaiting(d.p.voice, d.name, 0)
	}
	d.waiting.Because(reason)
}

// elected ends what because has begun.
func (d *candidate) elected() {
	if d.waiting != nil {
		d.waiting.End()
		d.waiting = nil
	}
}

// lead runs the command in a term. If it returns nil, the candidacy is over.
func (d *candidate) lead(_ context.Context, l *leasehold.Lease) error {
	d.elected()
	signals, ok := d.signals.begin()
	if !ok {
		return nil // asked to end just before
	}
	defer d.signals.end()
	d.p.voice.Note("leading %q with token %v", d.name, l.Token())
	o := runUnder(d.p, signals, single(l), d.budget, d.cmd, false)
	o.Reap()
	if _, ok := o.Err.(*runner.StartError); ok {
		d.failed = startFailed(o.Err)
		return nil
	}
	if d.signals.ending() != 0 || o.Err == nil && (diedOf(o, syscall.SIGINT) || diedOf(o, syscall.SIGHUP) && d.signals.hungUp()) {
		signals.tellJob(&o) // before it resigns, which can take seconds
		d.over, d.last = true, o
		return nil
	}
	if o.Err != nil {
		return o.Err
	}
	return fmt.Errorf("the command ended by itself, with exit code %d", o.Code)
}

// diedOf reports whether a command was ended by sig, or says so by its exit code.
func diedOf(o runner.Outcome, sig syscall.Signal) bool {
	return o.Code == runner.SignalCode+int(sig)
}

// relay passes signals on to the command while one runs. Otherwise those that ask to
// end cancel the candidacy. SIGHUP asks services to read their configuration again, so it
// ends a candidacy only if it comes from a terminal that is gone, or if the command dies of
// it. A relay is safe for concurrent use.
type relay struct {
	cancel   func()
	terminal bool // there is one
	unheard  func(syscall.Signal)

	mu     sync.Mutex
	term   *signals       // of the command that runs; nil: none does
	sig    syscall.Signal // the first that asked to end
	hangup bool           // SIGHUP was passed on to the command that runs, or ran last
}

// relay relays what arrives.
func (r *relay) relay(from *signals) {
	for s := range from.ch {
		r.mu.Lock()
		sig, ok := s.(syscall.Signal)
		switch {
		case sig == syscall.SIGHUP && r.term != nil:
			r.hangup = true
		case sig == syscall.SIGHUP && !r.terminal:
			r.unheard(sig)
		case ok && runner.Ends(sig) && r.sig == 0:
			r.sig = sig
		}
		switch {
		case r.term != nil:
			select {
			case r.term.ch <- s:
			default: // as many were not read yet
			}
		case r.sig != 0:
			r.cancel()
		}
		r.mu.Unlock()
	}
}

// begin returns the signals for a command, or false if none is to be started.
func (r *relay) begin() (_ *signals, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sig != 0 {
		return nil, false
	}
	r.term, r.hangup = newSignals(), false
	return r.term, true
}

// end notes that the command has ended.
func (r *relay) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.term = nil
	if r.sig != 0 {
		r.cancel()
	}
}

// ending returns the signal that asked to end, or zero.
func (r *relay) ending() syscall.Signal {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sig
}

// hungUp reports whether the command that ran last was passed SIGHUP.
func (r *relay) hungUp() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hangup
}
