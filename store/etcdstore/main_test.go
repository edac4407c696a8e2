package etcdstore_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/leasehold-dev/leasehold/internal/testenv/etcdtest"
)

// server is one etcd of the system's packages, for all tests that do not harm it. A test that uses
// its proxy does not run in parallel, since others would meet the faults.
var server *etcdtest.Cluster

// roleVar names the role that the test binary plays in a process of a test.
const roleVar = "LEASEHOLD_ETCD_ROLE"

var roles = make(map[string]func(args []string) error)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		if err := roles[role](os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(run(m))
}

func run(m *testing.M) (code int) {
	program, err := etcdtest.Installed()
	if err == nil {
		server, err = etcdtest.Launch(etcdtest.Options{Program: program})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if code = m.Run(); code == 0 {
		server.Close()
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	server.Close()
	return code
}
