package memstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

// Each URL of a store in memory opens a store of its own. The URL has no settings.
func TestOpenByURL(t *testing.T) {
	ctx := context.Background()
	for _, url := range []string{"memory:", "memory"} {
		s, err := store.Open(ctx, url, nil)
		if err != nil {
			t.Fatalf("%s: %v", url, err)
		}
		if _, err := s.Acquire(ctx, store.AcquireRequest{Lease: request("lock", 1e9)}); err != nil {
			t.Errorf("%s: acquire in a store of its own: %v", url, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, url := range []string{"memory:shared", "memory://x", "memory:?a=b"} {
		if s, err := store.Open(ctx, url, nil); s != nil || !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", url, err)
		}
	}
}

// A Store in memory serves programs whose goroutines compete only with each other.
func ExampleNew() {
	ctx := context.Background()
	s := memstore.New(nil)
	defer s.Close()

	mine := store.Lease{Name: "stock", Owner: store.NewOwner(), TTL: 30e9}
	if _, err := s.Acquire(ctx, store.AcquireRequest{Lease: mine}); err != nil {
		fmt.Println(err)
		return
	}
	yours := store.Lease{Name: "stock", Owner: store.NewOwner(), TTL: 30e9}
	_, err := s.Acquire(ctx, store.AcquireRequest{Lease: yours})
	fmt.Println(errors.Is(err, store.ErrBusy))

	fmt.Println(s.Release(ctx, store.ReleaseRequest{Lease: mine}))
	// Output:
	// true
	// <nil>
}
