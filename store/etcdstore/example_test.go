package etcdstore_test

import (
	"context"
	"fmt"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store/etcdstore"
)

// All programs that open the same cluster with the same prefix exclude each other, and
// so do programs that use concurrency.NewMutex(session, "jobs/backup").
func ExampleOpen() {
	ctx := context.Background()
	url := urlOf(server.Endpoints()...) // such as "etcd://10.0.0.1,10.0.0.2,10.0.0.3", of all voting members
	s, err := etcdstore.Open(ctx, url, &etcdstore.Options{Prefix: "jobs"})
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
