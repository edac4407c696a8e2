package guardtest

import (
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/internal/testenv/sqltest"
)

// The servers of all tests of this binary. Each test uses names of its own.
var (
	postgres, mariadb *sqltest.Server
	mysql             *sqltest.Server // nil if it was not asked for; see sqltest.MySQL
	redisServer       *redistest.Server
)

func TestMain(m *testing.M) {
	if os.Getenv(holderEnv) != "" {
		beHolder()
	}
	os.Exit(withServers(m))
}

func withServers(m *testing.M) int {
	flag.Parse()
	var starting sync.WaitGroup
	var errs [4]error
	starting.Go(func() { postgres, errs[0] = sqltest.LaunchPostgreSQL() })
	starting.Go(func() { mariadb, errs[1] = sqltest.LaunchMariaDB() })
	starting.Go(func() { redisServer, errs[2] = redistest.Launch(redistest.Options{}) })
	if sqltest.MySQL() != "" {
		starting.Go(func() { mysql, errs[3] = sqltest.LaunchMySQL() })
	}
	starting.Wait()
	code := 0
	for _, err := range errs {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if code == 0 {
		// The tests mostly wait for leases to expire.
		if err := flag.Set("test.parallel", "8"); err != nil {
			panic(err)
		}
		code = m.Run()
	}
	if postgres != nil {
		postgres.Close()
	}
	if mariadb != nil {
		mariadb.Close()
	}
	if mysql != nil {
		mysql.Close()
	}
	if redisServer != nil {
		redisServer.Close()
	}
	return code
}
