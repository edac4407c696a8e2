package storetest_test

import (
	"testing"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
	"github.com/leasehold-dev/leasehold/store/storetest"
)

// A test of a store whose locks one handle reaches. Stores that several processes share
// also set Options.Second.
func ExampleRun() {
	_ = func(t *testing.T) { // func TestConformance(t *testing.T)
		open := func(*testing.T) *store.Store { return memstore.New(nil) }
		storetest.Run(t, open, storetest.Options{})
	}
}
