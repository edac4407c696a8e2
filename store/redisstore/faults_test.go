package redisstore_test

import (
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/storetest"
)

// Each verb meets each fault.
func TestFaults(t *testing.T) {
	server := redistest.Start(t)
	storetest.RunFaults(t, func(t *testing.T) (*store.Store, storetest.Link) {
		p := faultproxy.New(t, server.Addr())
		return open(t, []string{p.Addr()}, nil), p
	}, storetest.Options{GivesUp: true, Second: func(t *testing.T) *store.Store { return open(t, []string{server.Addr()}, nil) }})
}
