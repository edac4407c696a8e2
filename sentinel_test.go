package leasehold_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// The master is killed while a lock is held and another client waits for it. The promoted
// replica knows of both, so the lease is renewed there, and the lock goes to the waiter when
// the lease is released. The store refuses a class that it does not promise.
func TestLeaseOutlivesAFailover(t *testing.T) {
	t.Parallel() // it mostly waits
	w := redistest.StartWatched(t, 1)
	client := func() *leasehold.Client {
		s, err := redisstore.Open(t.Context(), w.URL(), patient())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return leasehold.New(s, nil)
	}
	one, two := client(), client()
	o := leasehold.LockOptions{TTL: time.Minute, RenewEvery: time.Second}
	_, err := one.Mutex("a").With(leasehold.LockOptions{Require: store.CrashSafe}).Acquire(t.Context())
	if !errors.Is(err, leasehold.ErrUnsupported) || !strings.Contains(err.Error(), "efficiency at most") {
		t.Errorf("a lock that requires more: %v, want ErrUnsupported that names the class", err)
	}
	lease, err := one.Mutex("a").With(o).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	next := make(chan fence.Token, 1)
	var waiting sync.WaitGroup
	defer waiting.Wait() // the store stays open until the second lease is released
	waiting.Go(func() {
		err := two.Mutex("a").With(o).Do(t.Context(), func(_ context.Context, l *leasehold.Lease) error {
			next <- l.Token()
			return nil
		})
		if err != nil {
			t.Error(err)
			close(next)
		}
	})
	replica := w.Replicas[0]
	eventually.True(t, "the replica has the lock and its queue", func() bool {
		return replica.Text(t, "EXISTS", "a", "{a}:line") == "2"
	})
	w.Master.Kill()
	w.Promoted(t)
	before := lease.Deadline()
	eventually.True(t, "the new master has renewed the lease", func() bool { return lease.Deadline().After(before) })
	if err := lease.Err(); err != nil {
		t.Fatalf("the lease was lost: %v", err)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	select {
	case token := <-next:
		if token <= lease.Token() {
			t.Errorf("the waiter has token %d, want more than %d", token, lease.Token())
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the waiter did not get the lock within 30 s of its release")
	}
}
