package cli

import (
	"github.com/spf13/cobra"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/manual"
)

// manCommand writes the manual pages that packages have.
func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIRECTORY",
		Short:  "Write the manual pages into a directory",
		Hidden: true,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage(c, "give one directory, not %d", len(args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			return manual.Write(args[0], c.Root(), thisBuild().Version)
		},
	}
}
