package memory_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memory"
	"github.com/leasehold-dev/leasehold/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return memory.New(nil) }, storetest.Options{})
}
