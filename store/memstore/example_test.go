package memstore_test

import (
	"context"
	"fmt"

	"github.com/leasehold-dev/leasehold/store"
	_ "github.com/leasehold-dev/leasehold/store/memstore" // for URLs that begin with memory:
)

// A program can leave it to its configuration which store it uses.
func Example_byURL() {
	s, err := store.Open(context.Background(), "memory:", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	fmt.Println(s.Caps().Engine)
	// Output: memory
}
