package cli

import "github.com/spf13/cobra"

// labCommand is the parent of the commands that replay failures and run
// experiments.
func (p *program) labCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "lab",
		Short: "Watch locks fail, and torture a store",
		Long: `"lab run" shows how distributed locks fail: it replays well-known failures, first
on the design that is known to have them and then on Leasehold's. "lab torture"
tests a store, and leasehold with it.`,
		Example: `  leasehold lab list
  leasehold lab run crash
  leasehold lab torture --store redis://a,b,c --for 1m`,
		RunE: func(c *cobra.Command, args []string) error {
			return usage(c, "name a subcommand: list, run or torture")
		},
	}
	s, t := storyteller{p}, torturer{p}
	c.AddCommand(s.listCommand(), s.runCommand(), s.clientCommand(), t.command(), t.workerCommand())
	return c
}
