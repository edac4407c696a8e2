package zkstore_test

import (
	"context"
	"fmt"
	"log"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store/zkstore"
)

// The program has an identity of its own in the ensemble.
func ExampleOpen() {
	ctx := context.Background()
	st, err := zkstore.Open(ctx, "zookeeper://zk1.example.com,zk2.example.com,zk3.example.com", &zkstore.Options{
		Auth: []zkstore.Identity{{Scheme: "digest", ID: "billing:secret"}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	err = leasehold.New(st, nil).Mutex("invoices").Do(ctx, func(ctx context.Context, l *leasehold.Lease) error {
		fmt.Println("held with token", l.Token())
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
}
