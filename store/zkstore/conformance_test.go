package zkstore

import (
	"cmp"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/storetest"
)

func TestZooKeeperConforms(t *testing.T) {
	t.Parallel() // it mostly waits
	open := func(t *testing.T) *store.Store {
		return store.New(mustOpen(t, &Options{servers: []string{shared.Addr}}))
	}
	storetest.Run(t, open, storetest.Options{Second: open})
}

// mustOpen opens a store that is patient with a busy machine.
func mustOpen(t testing.TB, o *Options) *engine {
	t.Helper()
	patient := *o
	patient.Timeout = cmp.Or(o.Timeout, patience)
	s, err := openEngine(t.Context(), &patient)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// Each verb meets each fault.
func TestFaults(t *testing.T) {
	t.Parallel() // it mostly waits
	storetest.RunFaults(t, func(t *testing.T) (*store.Store, storetest.Link) {
		p := faultproxy.New(t, shared.Addr)
		return store.New(mustOpen(t, &Options{servers: []string{p.Addr()}})), p
	}, storetest.Options{Second: func(t *testing.T) *store.Store {
		return store.New(mustOpen(t, &Options{servers: []string{shared.Addr}}))
	}})
}
