package redisstore_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// Three independent servers decide by majority. One of them may be down.
func ExampleOpen() {
	ctx := context.Background()
	s, err := redisstore.Open(ctx, "redis://10.0.0.1,10.0.0.2,10.0.0.3?max_ttl=60s", nil)
	if err != nil {
		log.Print(err)
		return
	}
	defer s.Close()

	locks := leasehold.New(s, nil)
	job := locks.Mutex("jobs/nightly").With(leasehold.LockOptions{Require: store.CrashSafe})
	err = job.Do(ctx, func(ctx context.Context, l *leasehold.Lease) error {
		fmt.Println("working with token", l.Token())
		return ctx.Err()
	})
	if err != nil {
		log.Print(err)
	}
}

// The options have what a URL cannot express, such as passwords that rotate.
func ExampleOpen_options() {
	s, err := redisstore.Open(context.Background(), "rediss://locks.example.org", &redisstore.Options{
		TLS: &tls.Config{MinVersion: tls.VersionTLS13},
		Credentials: func(context.Context) (user, password string, err error) {
			secret, err := os.ReadFile("/run/secrets/redis")
			return "locker", strings.TrimSpace(string(secret)), err
		},
	})
	if err != nil {
		log.Print(err)
		return
	}
	defer s.Close()
}

// The members of a cluster name each other, so a few addresses are enough.
func ExampleOpen_cluster() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	c, err := redisstore.Open(ctx, "redis-cluster://10.0.0.1,10.0.0.2", nil)
	if err != nil {
		log.Print(err)
		return
	}
	defer c.Close()

	locks := leasehold.New(c, nil)
	lease, err := locks.Mutex("jobs/nightly").Try(ctx)
	if err != nil {
		log.Print(err)
		return
	}
	defer lease.Release(context.Background())
}
