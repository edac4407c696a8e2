package cli

import (
	"errors"
	"os"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/help"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/sigaction"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/textfile"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/voice"
	"github.com/spf13/cobra"
)

// Main runs the command with args, less the program's own name, and returns the
// code to exit with, or ends the program by a signal. Call it once in a process.
func Main(args []string, stdin, stdout, stderr *os.File) int {
	p := &program{stdin: stdin, stdout: stdout, stderr: stderr}
	p.voice = voice.New(stderr)
	root := p.root()
	root.SetArgs(args)
	err := root.Execute()
	var exit *exitError
	switch {
	case err == nil:
	case !errors.As(err, &exit):
		p.voice.Fail(err)
	case exit.err != nil:
		p.voice.Fail(exit.err)
	}
	p.voice.Flush(time.Second)
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
name, on one machine or many, only one runs at a time.`,
		Example: `  leasehold run nightly-backup -- ./backup.sh /srv
  leasehold run deploy --try --store redis://a,b,c -- make deploy
  leasehold show deploy`,
		Args:          noCommand,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
		Version:       thisBuild().line(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	root.SetFlagErrorFunc(flagError)
	f := root.PersistentFlags()
	p.where.add(f)
	f.BoolVarP(&p.voice.Quiet, "quiet", "q", false, "print only errors")
	f.BoolVarP(&p.voice.Verbose, "verbose", "v", false, "print debug messages as well")
	root.AddCommand(
		runCommand(p), acquireCommand(p), releaseCommand(p), waitCommand(p), electCommand(p),
		lsCommand(p), showCommand(p), watchCommand(p), serveCommand(p),
		breakCommand(p), resizeCommand(p), bootstrapCommand(p), replaceCommand(p), doctorCommand(p), aclCommand(p), schemaCommand(p),
		labCommand(p), benchCommand(p), manCommand(),
		help.Topic("stores", "What --store takes: the URLs of stores", storesHelp()),
		help.Topic("exit-codes", "What exit codes mean", help.ExitCodes),
		help.Topic("json", "What --json prints", help.JSONBegin+help.Locks+help.JSONEnd))
	completeStores(root)
	root.SetVersionTemplate("{{.Version}}")
	strict(root)
	return root
}

// strict turns calls of cobra's own commands with wrong arguments into errors.
// Otherwise they would print help.
func strict(root *cobra.Command) {
	help.Install(root, noTopic)
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

// program is one run of the command.
type program struct {
	stdin, stdout, stderr *os.File

	voice *voice.Voice
	where storeFlags

	report textfile.Run // of the command
}
