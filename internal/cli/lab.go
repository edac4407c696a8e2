package cli

import "github.com/spf13/cobra"

// labCommand is the parent of what tries things out.
func (p *program) labCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "lab",
		Short: "See locks fail, and put a store to the test",
		Long: `Shows how distributed locks fail: "lab run" replays the failures that are told of
them, on the design they are told of and then on Leasehold's. And puts a store to
the test, and leasehold with it: "lab torture".`,
		Example: `  leasehold lab list
  leasehold lab run crash
  leasehold lab torture --store redis://a,b,c --for 1m`,
		RunE: func(c *cobra.Command, args []string) error {
			return usage(c, "say what to do: list, run or torture")
		},
	}
	c.AddCommand(p.storyListCommand(), p.storyRunCommand(), p.storyClientCommand(), p.tortureCommand(), p.tortureWorkerCommand())
	return c
}
