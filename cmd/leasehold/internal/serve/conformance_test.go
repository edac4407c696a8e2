package serve_test

import (
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve"
	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
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

// Each verb meets each fault on the way to the server.
func TestFaults(t *testing.T) {
	url, _ := start(t, serve.Options{})
	storetest.RunFaults(t, func(t *testing.T) (*store.Store, storetest.Link) {
		p := faultproxy.New(t, strings.TrimPrefix(url, "http://"))
		return remote(t, "http://"+p.Addr(), nil), p
	}, storetest.Options{Second: func(t *testing.T) *store.Store { return remote(t, url, nil) }})
}
