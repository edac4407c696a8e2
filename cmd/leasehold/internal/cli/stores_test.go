//go:build unix

package cli

import (
	"fmt"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/internal/testenv/sqltest"
)

// everyStore runs a test on each store that processes can share.
func everyStore(t *testing.T, test func(t *testing.T, s *site)) {
	t.Parallel() // it mostly waits
	t.Run("file", func(t *testing.T) { test(t, newSite(t)) })
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprintf("redis %d", n), func(t *testing.T) {
			test(t, newSite(t, storeVar+"=redis://"+addresses(redistest.StartN(t, n))+patiently))
		})
	}
	t.Run("postgresql", func(t *testing.T) {
		server, err := sqltest.LaunchPostgreSQL()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(server.Close)
		s := newSite(t, fmt.Sprintf("%s=postgres://%s:%s@%s/%s?sslmode=disable", storeVar, server.User, server.Password, server.Addr, server.Database))
		s.run(0, "schema")
		test(t, s)
	})
}

// everyKindOfLock runs a test on stores that keep every kind of lock, with more variables in
// the environment of the command.
func everyKindOfLock(t *testing.T, test func(t *testing.T, s *site), env ...string) {
	t.Parallel() // it mostly waits
	t.Run("file", func(t *testing.T) { test(t, newSite(t, env...)) })
	t.Run("redis", func(t *testing.T) {
		test(t, newSite(t, append(env, storeVar+"=redis://"+redistest.Start(t).Addr())...))
	})
}
