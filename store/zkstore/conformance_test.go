package zkstore

import (
	"testing"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/storetest"
)

func TestZooKeeperConforms(t *testing.T) {
	t.Parallel() // it mostly waits
	open := func(t *testing.T) store.Store { return mustOpen(t, &Options{Servers: []string{shared.Addr}}) }
	storetest.Run(t, open, storetest.Options{Second: open})
}

func mustOpen(t testing.TB, o *Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
