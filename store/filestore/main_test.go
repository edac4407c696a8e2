package filestore

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// childRole names, in the environment of a process of this test binary, the role that it
// plays: a key of roles.
const childRole = "LEASEHOLD_SQLSTORE_TEST_ROLE"

func TestMain(m *testing.M) {
	if name := os.Getenv(childRole); name != "" {
		role, ok := roles[name]
		if !ok {
			fmt.Fprintln(os.Stderr, "no such role:", name)
			os.Exit(2)
		}
		if err := role(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, name+":", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}
