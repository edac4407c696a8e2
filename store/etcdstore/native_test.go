package etcdstore_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/etcdstore"
)

// native returns etcd's own client.
func native(t *testing.T, endpoints []string, options ...func(*clientv3.Config)) *clientv3.Client {
	t.Helper()
	c := clientv3.Config{Endpoints: endpoints, DialTimeout: 10 * time.Second, Logger: zap.NewNop()}
	for _, o := range options {
		o(&c)
	}
	client, err := clientv3.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// Six owners with concurrency.Mutex and six with this store take turns at one lock.
func TestTurnsWithNativeMutex(t *testing.T) {
	const each, turns = 6, 4
	client := native(t, server.Endpoints())
	var inside atomic.Int32
	var group sync.WaitGroup
	turn := func() {
		if n := inside.Add(1); n != 1 {
			t.Errorf("%d holders at once", n)
		}
		time.Sleep(time.Millisecond)
		inside.Add(-1)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for range each {
		group.Go(func() {
			session, err := concurrency.NewSession(client, concurrency.WithTTL(60))
			if err != nil {
				t.Error(err)
				return
			}
			defer session.Close()
			m := concurrency.NewMutex(session, "turns/a%2Fb")
			for range turns {
				if err := m.Lock(ctx); err != nil {
					t.Error(err)
					return
				}
				turn()
				if err := m.Unlock(ctx); err != nil {
					t.Error(err)
				}
			}
		})
		s := open(t, server.Endpoints(), etcdstore.Options{Prefix: "turns"})
		group.Go(func() {
			for range turns {
				r := store.WaitRequest{Lease: request("a/b", time.Minute)}
				if _, err := s.Wait(ctx, r, nil); err != nil {
					t.Error(err)
					return
				}
				turn()
				if err := s.Release(ctx, store.ReleaseRequest{Lease: r.Lease}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
}

// A waiter takes its turn behind "etcdctl lock", and the other way round.
func TestTurnsWithEtcdctl(t *testing.T) {
	program, err := exec.LookPath("etcdctl")
	if err != nil {
		t.Fatal("etcdctl is not installed: on Debian and Ubuntu, sudo apt-get install -y etcd-client")
	}
	s := open(t, server.Endpoints(), etcdstore.Options{Prefix: "cli"})
	lock := func() (key string, end func()) {
		cmd := exec.Command(program, "--endpoints="+server.Members[0].Addr, "lock", "cli/job")
		cmd.Env = append(cmd.Environ(), "ETCDCTL_API=3")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		end = sync.OnceFunc(func() {
			_ = cmd.Process.Signal(os.Interrupt)
			_ = cmd.Wait()
		})
		t.Cleanup(end)
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(line), end
	}
	key, end := lock()
	st, err := s.Inspect(t.Context(), "job")
	if err != nil || !st.Held || !st.Holder.Foreign || st.Holder.Owner != key || st.ExpiresIn <= 0 {
		t.Errorf("inspect: %+v, %v, want it held by the key %q", st, err, key)
	}
	l := request("job", time.Minute)
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l}); err == nil {
		t.Fatal("acquired a lock that etcdctl holds")
	}
	told := make(chan error, 100)
	done := make(chan error, 1)
	r := store.WaitRequest{Lease: request("job", time.Minute)}
	go func() {
		_, err := s.Wait(t.Context(), r, func(err error) { told <- err })
		done <- err
	}()
	<-told
	end()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	locked := make(chan func(), 1)
	go func() { _, end := lock(); locked <- end }()
	client := native(t, server.Endpoints())
	eventually.True(t, "etcdctl waits", func() bool { return count(t, client, "cli/job/") == 2 })
	select {
	case <-locked:
		t.Error("etcdctl has the lock while it is held")
	default:
	}
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r.Lease}); err != nil {
		t.Fatal(err)
	}
	(<-locked)()
}

// A release notifies the next waiter through the inbox of its process. Here waiters read the
// queue only when they refresh their places, which is too late for this test.
func TestHandOverThroughTheInbox(t *testing.T) {
	const turns = 60
	var group sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for range 2 {
		s := open(t, server.Endpoints(), etcdstore.Options{Prefix: "pingpong"})
		etcdstore.TrustInbox(s)
		group.Go(func() {
			r := store.WaitRequest{Lease: request("ball", time.Minute)}
			for range turns {
				if _, err := s.Wait(ctx, r, nil); err != nil {
					t.Error(err)
					return
				}
				next := store.WaitRequest{Lease: request("ball", time.Minute)}
				if _, err := s.ReleaseAndRejoin(ctx, store.ReleaseRequest{Lease: r.Lease}, next); err != nil {
					t.Error(err)
					return
				}
				r = next
			}
			if err := s.Release(ctx, store.ReleaseRequest{Lease: r.Lease}); err != nil && !errors.Is(err, store.ErrNotHeld) {
				t.Error(err)
			}
		})
	}
	group.Wait()
}
