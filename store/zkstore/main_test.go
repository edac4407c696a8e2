package zkstore

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/leasehold-dev/leasehold/internal/testenv/child"
	"github.com/leasehold-dev/leasehold/internal/testenv/zktest"
)

// shared is the server of the tests that do it no harm.
var shared *zktest.Server

func TestMain(m *testing.M) {
	if server := os.Getenv(roamRole); server != "" {
		fmt.Fprintln(os.Stderr, roamUntilKilled(server))
		os.Exit(1)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	if shared, err = zktest.Launch(zktest.Options{Settings: []string{"maxSessionTimeout=40000", "maxClientCnxns=0", "4lw.commands.whitelist=srvr,conf,wchp"}}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	shared.Close()
	if code == 0 {
		if err := goleak.Find(goleak.IgnoreAnyFunction(child.Goroutine)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	return code
}
