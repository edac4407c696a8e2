package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store/redisstore"
	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
)

// broken breaks a lease of c through by, some time after its grant. It returns how long
// after the break the holder learned of it, and how long Break took.
func broken(t *testing.T, c, by *leasehold.Client, ttl, after time.Duration) (told, took time.Duration) {
	t.Helper()
	lease, err := c.Mutex("a").With(leasehold.LockOptions{TTL: ttl}).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(after)
	return breaks(t, lease, by)
}

// breaks breaks the lease through by. It returns what broken does.
func breaks(t *testing.T, lease *leasehold.Lease, by *leasehold.Client) (told, took time.Duration) {
	t.Helper()
	start := time.Now()
	released := make(chan struct{})
	go func() {
		defer close(released)
		<-lease.Done()
		told = time.Since(start)
		if err := lease.Err(); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("the error of the lease is %v, want %v", err, leasehold.ErrLost)
		}
		if err := lease.Release(t.Context()); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("release: %v, want %v", err, leasehold.ErrLost)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := by.Operator().Break(ctx, leasehold.BreakRequest{Name: lease.Name(), Token: lease.Token(), Reason: "it hangs"}); err != nil {
		t.Fatal(err)
	}
	took = time.Since(start)
	<-released
	return told, took
}

// A holder learns of a break as soon as the push of the server arrives. The lock is free
// once the holder has released it.
func TestBreakIsPushed(t *testing.T) {
	for _, nodes := range []int{1, 3, 4} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network, hosts := bubbled(t, nodes)
				client := func() *leasehold.Client {
					s := openBubbled(t, network, hosts, nil)
					return leasehold.New(s, &leasehold.Options{Clock: clock.Func(func() clock.Instant { return clock.Instant(time.Now().UnixNano()) })})
				}
				c, by := client(), client()
				if told, took := broken(t, c, by, 30*time.Second, 13*time.Second); told > 10*time.Millisecond || took > told+time.Second {
					t.Errorf("the holder learned after %v, want at most 10ms; the lock was free after %v, want at most a second later", told, took)
				}
			})
		})
	}
}

// The master that sentinels watch pushes as well.
func TestBreakIsPushedOverSentinels(t *testing.T) {
	t.Parallel() // it mostly waits
	w := redistest.StartWatched(t, 1)
	const ttl = 10 * time.Minute
	client := func() *leasehold.Client {
		return leasehold.New(openAt(t, w.URL(), &redisstore.Options{NodeTimeout: long, ConnectTimeout: long, MaxTTL: ttl}), nil)
	}
	if told, took := broken(t, client(), client(), ttl, 0); told > ttl/4 || took > ttl/4 {
		t.Errorf("the holder learned after %v, and the lock was free after %v, want at most %v", told, took, ttl/4)
	}
}

// A client without the right to channels learns of a break at its next renewal, and a client
// without the right to publish can still break leases.
func TestBreakWithoutRights(t *testing.T) {
	t.Parallel() // it mostly waits
	r := ruled{t: t, servers: redistest.StartN(t, 1)}
	rule, err := redisadmin.ACL{User: "locker", Uses: redisadmin.ToLock}.Rule()
	if err != nil {
		t.Fatal(err)
	}
	for _, lacks := range []string{"&leasehold:to:*", "+subscribe", "+publish"} {
		t.Run(lacks, func(t *testing.T) {
			less := slices.DeleteFunc(slices.Clone(rule), func(word string) bool { return word == lacks })
			if len(less) != len(rule)-1 {
				t.Fatalf("%q without %q is %q", rule, lacks, less)
			}
			r.apply(less)
			client := func() *leasehold.Client {
				s, err := r.open()
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { s.Close() })
				return leasehold.New(s, nil)
			}
			broken(t, client(), client(), 3*time.Second, 0)
		})
	}
}
