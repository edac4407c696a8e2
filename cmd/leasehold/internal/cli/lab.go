package cli

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/lab/stories"
)

// labCommand is the parent of the commands that replay failures and run
// experiments.
func labCommand(p *program) *cobra.Command {
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
	c.AddCommand(labListCommand(p), labRunCommand(p), storyClientCommand(p), tortureCommand(p), tortureWorkerCommand(p))
	return c
}

// labListCommand is "lab list".
func labListCommand(p *program) *cobra.Command {
	return &cobra.Command{
		Use:               "list",
		Short:             "List the failure stories",
		Long:              `Lists the failure stories that "leasehold lab run" replays.`,
		Args:              noArguments,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
			for _, s := range stories.All() {
				fmt.Fprintf(w, "%s\t%s\n", s.Name, s.Title)
			}
			return w.Flush()
		},
	}
}
