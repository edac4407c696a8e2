// Package cli is the leasehold command: its flags, what it prints, and its exit
// codes. Messages of the command itself go to standard error; standard
// output is for what was asked for, and under "run" it is the child's alone.
package cli

import (
	"errors"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/sigaction"
)

// Main runs the command with args, less the program's own name, and returns the
// code to exit with, or ends the program by a signal. Call it once in a process.
func Main(args []string, stdin, stdout, stderr *os.File) int {
	p := &program{stdin: stdin, stdout: stdout, stderr: stderr}
	p.voice = newVoice(stderr)
	root := p.root()
	root.SetArgs(args)
	err := root.Execute()
	var exit *exitError
	switch {
	case err == nil:
	case !errors.As(err, &exit):
		p.voice.error("%v", err)
	case exit.err != nil:
		p.voice.error("%v", exit.err)
	}
	p.voice.flush(time.Second)
	if exit != nil && exit.sig != 0 {
		sigaction.Die(exit.sig, exit.typed)
	}
	return codeOf(err)
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "leasehold",
		Short: "Run commands under distributed locks",
		Long: `Leasehold runs a command while it holds a lock: of all processes that use the same
name, on one machine or many, only one runs at a time.

--store, or the variable LEASEHOLD_STORE, says where the locks are kept:

` + schemeHelp() + `
All subcommands exit with 0 on success and with 125 if leasehold itself fails, for
example on wrong usage or if the store cannot be reached. "leasehold COMMAND --help"
lists its other exit codes.`,
		Example: `  leasehold run nightly-backup -- ./backup.sh /srv
  leasehold run deploy --try --store redis://a,b,c -- make deploy
  leasehold ls`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	root.SetFlagErrorFunc(flagError)
	f := root.PersistentFlags()
	p.where.add(f)
	f.BoolVarP(&p.voice.quiet, "quiet", "q", false, "print only errors")
	f.BoolVarP(&p.voice.verbose, "verbose", "v", false, "print debug messages as well")
	op := operator{p}
	root.AddCommand(p.runCommand(), acquireCommand(p), releaseCommand(p), waitCommand(p), breakCommand(p), resizeCommand(p), electCommand(p), watchCommand(p), serveCommand(p), p.lsCommand(), p.showCommand(), op.bootstrapCommand(), op.replaceCommand(), op.doctorCommand(), p.aclCommand(), op.schemaCommand(), p.labCommand(), bench{p}.command(), p.versionCommand(), manCommand())
	strict(root)
	return root
}

// strict turns calls of cobra's own commands with wrong arguments into errors.
// Otherwise they would print help.
func strict(root *cobra.Command) {
	root.SetHelpCommand(&cobra.Command{
		Use:   "help [command]",
		Short: "Help about a command",
		RunE: func(c *cobra.Command, args []string) error {
			about, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return usage(root, "there is no command %q", strings.Join(args, " "))
			}
			return about.Help()
		},
	})
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.Use = "completion bash|zsh|fish|powershell"
			c.Short = "Print a completion script for a shell"
			c.Args = cobra.ArbitraryArgs // the error below says more than cobra's
			c.RunE = func(c *cobra.Command, _ []string) error {
				return usage(c, "name the shell: leasehold completion bash|zsh|fish|powershell")
			}
		}
	}
}
