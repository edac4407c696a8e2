// Command leasehold runs commands under distributed locks, and shows who has
// them.
package main

import (
	"os"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
