package filestore

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/leasehold-dev/leasehold/store"
)

// Several calls of Close at once close a store once: another store of the process has the same
// file, and goes on using it.
func TestCloseSeveralTimesAtOnce(t *testing.T) {
	for range 50 {
		path := filepath.Join(t.TempDir(), "locks.db")
		open := func() store.Store {
			s, err := OpenFile(t.Context(), path, nil)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		s, other := open(), open()
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				if err := s.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			})
		}
		group.Wait()
		if _, err := other.Acquire(t.Context(), store.AcquireRequest{Lease: request("a")}); err != nil {
			t.Fatalf("the other store: %v", err)
		}
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
