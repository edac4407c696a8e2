package recordstore_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/virtual"
	"github.com/leasehold-dev/leasehold/store"
)

// Close does not wait for requests that were refused since the store cannot give the class that
// they require.
func TestCloseAfterARefusedClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open((&server{class: store.Efficiency}).driver(), nil, virtual.Clock())
		l := lease(time.Minute)
		l.Require = store.Consensus
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l}); !errors.Is(err, store.ErrUnsupported) {
			t.Errorf("acquire: %v, want %v", err, store.ErrUnsupported)
		}
		if _, err := s.Wait(t.Context(), store.WaitRequest{Lease: l}, nil); !errors.Is(err, store.ErrUnsupported) {
			t.Errorf("wait: %v, want %v", err, store.ErrUnsupported)
		}
		began := time.Now()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("Close took %v", took)
		}
	})
}
