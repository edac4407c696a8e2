// Command leasehold runs commands under distributed locks, and shows who has
// them.
package main

import (
	"os"

	"github.com/leasehold-dev/leasehold/internal/cli"
	"github.com/leasehold-dev/leasehold/internal/runner"
)

func main() {
	if runner.IsGuard(os.Args) {
		os.Exit(runner.Guard(os.Args))
	}
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
