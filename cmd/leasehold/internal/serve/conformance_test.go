package serve_test

import (
	"testing"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
	"github.com/leasehold-dev/leasehold/store/storetest"
)

// A store over HTTP keeps the contract of the store behind the server, also between two clients
// at two servers.
func TestConformance(t *testing.T) {
	var shared *store.Store
	open := func(t *testing.T) *store.Store {
		url, _ := start(t, serve.Options{Store: shared})
		return remote(t, url, nil)
	}
	storetest.Run(t, func(t *testing.T) *store.Store {
		shared = memstore.New(nil)
		return open(t)
	}, storetest.Options{Second: open})
}
