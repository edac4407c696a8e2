//go:build unix

package cli

import (
	"github.com/leasehold-dev/leasehold/internal/testenv/etcdtest"
)

// launchEtcd starts one member of the current version, which ends with the test.
func launchEtcd(t tester) *etcdtest.Cluster {
	t.Helper()
	program, err := etcdtest.Current()
	if err != nil {
		t.Fatal(err)
	}
	c, err := etcdtest.Launch(etcdtest.Options{Program: program})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
