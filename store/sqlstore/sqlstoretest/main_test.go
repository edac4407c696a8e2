package sqlstoretest

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/leasehold-dev/leasehold/internal/testenv/sqltest"
)

// postgres is the server of most tests of this binary. Each test has a schema of its
// own in it.
var postgres *sqltest.Server

func TestMain(m *testing.M) {
	code := withServer(m)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func withServer(m *testing.M) int {
	flag.Parse()
	var err error
	if postgres, err = sqltest.LaunchPostgreSQL("max_connections=500"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer postgres.Close()
	return m.Run()
}
