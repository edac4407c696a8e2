package etcdstore_test

import (
	"context"
	"fmt"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/etcdstore"
)

// All programs that open the same cluster with the same prefix exclude each other, and
// so do programs that use concurrency.NewMutex(session, "jobs/backup").
func ExampleOpen() {
	ctx := context.Background()
	endpoints := server.Endpoints() // such as "10.0.0.1:2379", of all voting members
	s, err := etcdstore.Open(ctx, endpoints, &etcdstore.Options{Prefix: "jobs"})
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

// A program whose configuration has the URL of a store need not know which it is. It
// imports the packages of those that it supports.
func ExampleParseURL() {
	endpoints, o, err := etcdstore.ParseURL("etcd://10.0.0.1,10.0.0.2,10.0.0.3/jobs?max_ttl=30s")
	fmt.Println(endpoints, o.Prefix, o.MaxTTL, err)
	fmt.Println(store.Scheme("etcds://10.0.0.1"))
	// Output:
	// [10.0.0.1:2379 10.0.0.2:2379 10.0.0.3:2379] jobs 30s <nil>
	// etcds
}
