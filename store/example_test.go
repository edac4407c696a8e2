package store_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

// The URL usually comes from the program's configuration. The program imports the
// package of each store that it may name.
func ExampleOpen() {
	s, err := store.Open(context.Background(), "memory:", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	fmt.Println(s.Caps().Engine)

	_, err = store.Open(context.Background(), "carrier-pigeon://coop", nil)
	fmt.Println(errors.Is(err, store.ErrUnsupported))
	// Output:
	// memory
	// true
}

// A semaphore is a kind of lock: all requests for it name the same kind.
func ExampleSemaphore() {
	ctx := context.Background()
	s := memstore.New(nil)
	defer s.Close()

	for range 3 {
		g, err := s.Acquire(ctx, store.AcquireRequest{Lease: store.Lease{
			Name:  "licences",
			Owner: store.NewOwner(),
			Kind:  store.Semaphore(2),
			TTL:   time.Minute,
		}})
		if errors.Is(err, store.ErrBusy) {
			fmt.Println("no permit is left")
			continue
		}
		fmt.Println("permit", g.Slot)
	}
	// Output:
	// permit 0
	// permit 1
	// no permit is left
}
