package filestore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store/filestore"
)

// All programs of this machine that open the same folder exclude each other.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	ctx := context.Background()
	s, err := filestore.Open(ctx, "file:"+filepath.Join(dir, "locks"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	locks := leasehold.New(s, nil)
	err = locks.Mutex("backup").Do(ctx, func(ctx context.Context, l *leasehold.Lease) error {
		fmt.Println("holding", l.Name())
		return nil
	})
	fmt.Println(err)
	// Output:
	// holding backup
	// <nil>
}
