package etcdstore_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold/internal/testenv/etcdtest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/etcdstore"
)

// The tests here show habits of etcd's own clients that this store does not have, and
// states of a cluster that come with them.

// Two holders in one process exclude each other. Two of concurrency.Mutex with one session
// both have the lock: they share a key.
func TestOneProcessExcludesItself(t *testing.T) {
	client := native(t, server.Endpoints())
	session, err := concurrency.NewSession(client)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	for range 2 {
		if err := concurrency.NewMutex(session, "itself/native").Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, server.Endpoints(), etcdstore.Options{Prefix: "itself"})
	acquire(t, s, request("ours", time.Minute))
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("ours", time.Minute)}); !errors.Is(err, store.ErrBusy) {
		t.Errorf("second acquire in one process: %v, want %v", err, store.ErrBusy)
	}
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("native", time.Minute)}); !errors.Is(err, store.ErrBusy) {
		t.Errorf("acquire a lock that a concurrency.Mutex holds: %v, want %v", err, store.ErrBusy)
	}
}

// A lock does not contend with one whose name goes on after a slash, as mutexes do.
func TestNamesDoNotNest(t *testing.T) {
	s := open(t, server.Endpoints(), etcdstore.Options{Prefix: "nests"})
	for _, name := range []string{"a/b", "a", "a/", "a/b/c", "a%2Fb", "!a", "!inbox/a"} {
		l := request(name, time.Minute)
		acquire(t, s, l)
		if st, err := s.Inspect(t.Context(), name); err != nil || st.Holder.Owner != l.Owner || len(st.Queue) != 0 {
			t.Errorf("inspect %q: %+v, %v, want the holder %s and no waiter", name, st, err, l.Owner)
		}
	}
}

// A concurrency.Mutex with a slash in its name contends with the lock that its name begins
// with, whether that is one of this store or another concurrency.Mutex.
func TestNativeNamesNest(t *testing.T) {
	s := open(t, server.Endpoints(), etcdstore.Options{Prefix: "nested"})
	session, err := concurrency.NewSession(native(t, server.Endpoints()))
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if err := concurrency.NewMutex(session, "nested/a/b").Lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("a", time.Minute)}); !errors.Is(err, store.ErrBusy) {
		t.Errorf("acquire a while a/b is locked: %v, want %v", err, store.ErrBusy)
	}
	acquire(t, s, request("a/b", time.Minute)) // another lock
}

// The next owner is notified by a watch from the present revision. concurrency.Mutex watches
// from a past one, which etcd serves ten times a second.
func TestHandOverIsFasterThanNative(t *testing.T) {
	const turns = 20
	took := func(each [2]func() (func() error, error)) time.Duration {
		start := time.Now()
		var group sync.WaitGroup
		for _, lock := range each {
			group.Go(func() {
				for range turns {
					unlock, err := lock()
					if err == nil {
						err = unlock()
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		group.Wait()
		return time.Since(start)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var ours, theirs [2]func() (func() error, error)
	for i := range 2 {
		s := open(t, server.Endpoints(), etcdstore.Options{Prefix: "faster"})
		ours[i] = func() (func() error, error) {
			l := request("ours", time.Minute)
			_, err := s.Wait(ctx, store.WaitRequest{Lease: l}, nil)
			return func() error { return s.Release(ctx, store.ReleaseRequest{Lease: l}) }, err
		}
		session, err := concurrency.NewSession(native(t, server.Endpoints()))
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		m := concurrency.NewMutex(session, "faster/theirs")
		theirs[i] = func() (func() error, error) {
			return func() error { return m.Unlock(ctx) }, m.Lock(ctx)
		}
	}
	took(ours) // so that there are connections and leases
	if a, b := took(ours), took(theirs); a >= b {
		t.Errorf("%d turns of two processes took %v, want less than the %v with concurrency.Mutex", 2*turns, a, b)
	}
}

// While a lease has ended and etcd has not removed its keys yet, Inspect waits without asking again
// and again. After 6,000 leases ended at once, it made 1,231 requests.
func TestInspectWaitsForExpiredLease(t *testing.T) {
	var asked atomic.Int32
	end := time.Now().Add(time.Second / 2)
	expired := grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, o ...grpc.CallOption) error {
		err := invoke(ctx, method, req, reply, cc, o...)
		if r, ok := reply.(*etcdserverpb.LeaseTimeToLiveResponse); ok && time.Now().Before(end) {
			asked.Add(1)
			r.TTL = -1
		}
		return err
	})
	s := open(t, server.Endpoints(), etcdstore.Options{Prefix: "expired", DialOptions: []grpc.DialOption{expired}})
	acquire(t, s, request("a", time.Minute))
	if st, err := s.Inspect(t.Context(), "a"); err != nil || !st.Held {
		t.Errorf("inspect: %+v, %v, want the holder", st, err)
	}
	if n := asked.Load(); n == 0 || n > 30 {
		t.Errorf("Inspect asked %d times in half a second, want at most 25", n)
	}
}

// Keys of others below the prefix are no reason to fail, whatever they are called.
func TestListWithKeysOfOthers(t *testing.T) {
	s := open(t, server.Endpoints(), etcdstore.Options{Prefix: "others"})
	client := native(t, server.Endpoints())
	for _, key := range []string{"others/100%/1f", "others/%zz/1f", "others/a%2fb/1f", "others/", "others//x", "others/x", "others/!x", "others/!slots/a/x", "others/!slots/100%/1", "others/!broken/a/", "others/\xff\x00%/\xff"} {
		if _, err := client.Put(t.Context(), key, `{"owner":"x"}`); err != nil {
			t.Fatal(err)
		}
	}
	acquire(t, s, request("a", time.Minute))
	if all, err := s.List(t.Context(), ""); err != nil || len(all) != 1 || all[0].Name != "a" {
		t.Errorf("list: %+v, %v, want the lock a alone", all, err)
	}
}

// A key that was made without a lease keeps the lock until it is deleted, and is shown as
// one that does not expire.
func TestKeyWithoutLease(t *testing.T) {
	s := open(t, server.Endpoints(), etcdstore.Options{Prefix: "forever"})
	client := native(t, server.Endpoints())
	if _, err := client.Put(t.Context(), "forever/a/1", "by hand"); err != nil {
		t.Fatal(err)
	}
	st, err := s.Inspect(t.Context(), "a")
	if err != nil || !st.Held || !st.Holder.Foreign || st.ExpiresIn >= 0 {
		t.Errorf("inspect: %+v, %v, want a foreign holder that does not expire", st, err)
	}
	done := waits(t, s, request("a", time.Minute))
	if _, err := client.Delete(t.Context(), "forever/a/1"); err != nil {
		t.Fatal(err)
	}
	gets(t, "after the key was deleted", done)
}

// If an administrator deletes all keys of a lock, the holder learns so at its next renewal,
// a waiter's Wait ends, and the lock is free.
func TestKeysAreDeleted(t *testing.T) {
	s := open(t, server.Endpoints(), etcdstore.Options{Prefix: "deleted"})
	client := native(t, server.Endpoints())
	l := request("a", 6*time.Second)
	first := acquire(t, s, l)
	done := waits(t, s, request("a", 6*time.Second))
	if r, err := client.Delete(t.Context(), "deleted/a/", clientv3.WithPrefix()); err != nil || r.Deleted != 2 {
		t.Fatalf("%+v, %v, want two deleted keys", r, err)
	}
	if err := s.Renew(t.Context(), []store.Lease{l})[0]; !errors.Is(err, store.ErrNotHeld) {
		t.Errorf("renew a lease whose key is gone: %v, want %v", err, store.ErrNotHeld)
	}
	select {
	case err := <-done:
		if !errors.Is(err, store.ErrNotHeld) {
			t.Errorf("the wait ended with %v, want %v", err, store.ErrNotHeld)
		}
	case <-time.After(patience):
		t.Error("the wait of a waiter whose key is gone does not end")
	}
	if g := acquire(t, s, request("a", time.Minute)); g.Token <= first.Token {
		t.Errorf("token %v after %v, want a larger one", g.Token, first.Token)
	}
}

// A waiter whose lease is revoked queues again at the end, and both it and the waiter behind
// it get the lock. concurrency.Mutex fails then, and its session with it.
func TestRevokedLeaseOfAWaiter(t *testing.T) {
	client := native(t, server.Endpoints())
	for name, kind := range map[string]store.Kind{"mutex": {}, "semaphore": store.Semaphore(2), "read-write": store.ReadWrite} {
		t.Run(name, func(t *testing.T) {
			s := open(t, server.Endpoints(), etcdstore.Options{Prefix: "waiters-" + name})
			whole := func() store.Lease {
				if kind.IsMutex() {
					return request("a", time.Minute)
				}
				return as(request("a", time.Minute), kind, kind.Normal().Limit)
			}
			holder, first, second := whole(), whole(), whole()
			acquire(t, s, holder)
			firstDone := waits(t, s, first)
			secondDone := waits(t, s, second)
			r, err := client.Get(t.Context(), "waiters-"+name+"/a/", clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
			if err != nil || len(r.Kvs) != 3 {
				t.Fatalf("%+v, %v, want three keys", r, err)
			}
			if _, err := client.Revoke(t.Context(), clientv3.LeaseID(r.Kvs[1].Lease)); err != nil {
				t.Fatal(err)
			}
			release(t, s, holder)
			gets(t, "behind the waiter whose lease was revoked", secondDone)
			release(t, s, second)
			gets(t, "after its lease was revoked", firstDone)
			release(t, s, first)
		})
	}
}

// If the slots of a semaphore are deleted, its holders lose their leases, since the next
// holders take these slots. Until then no two of them are shown with one slot.
func TestSlotsAreDeleted(t *testing.T) {
	s := open(t, server.Endpoints(), etcdstore.Options{Prefix: "slotless"})
	client := native(t, server.Endpoints())
	first, second := as(request("a", time.Minute), store.Semaphore(2), 1), as(request("a", time.Minute), store.Semaphore(2), 1)
	acquire(t, s, first)
	acquire(t, s, second)
	if r, err := client.Delete(t.Context(), "slotless/!slots/a/", clientv3.WithPrefix()); err != nil || r.Deleted != 2 {
		t.Fatalf("%+v, %v, want two deleted keys", r, err)
	}
	st, err := s.Inspect(t.Context(), "a")
	if err != nil || len(st.Holders) != 2 || st.Holders[0].Slot == st.Holders[1].Slot {
		t.Errorf("inspect: %+v, %v, want two holders with different slots", st, err)
	}
	for i, err := range s.Renew(t.Context(), []store.Lease{first, second}) {
		if !errors.Is(err, store.ErrNotHeld) {
			t.Errorf("renew lease %d without a slot: %v, want %v", i, err, store.ErrNotHeld)
		}
	}
	// The place of the second one looks like that of a waiter, which the release of the first lets in again.
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: first}); !errors.Is(err, store.ErrNotHeld) {
		t.Errorf("release a lease without a slot: %v, want %v", err, store.ErrNotHeld)
	}
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: second}); err != nil && !errors.Is(err, store.ErrNotHeld) {
		t.Errorf("release the other lease without a slot: %v", err)
	}
	if g := acquire(t, s, as(request("a", time.Minute), store.Semaphore(2), 2)); g.Slot != 0 {
		t.Errorf("slot %d of a semaphore without holders, want 0", g.Slot)
	}
}

// Waiters of other clients are shown with leases whose ends are not known, and a key without a
// lease as one that never expires.
func TestWaitersOfOtherClients(t *testing.T) {
	s := open(t, server.Endpoints(), etcdstore.Options{Prefix: "strangers"})
	client := native(t, server.Endpoints())
	acquire(t, s, request("a", time.Minute))
	lease, err := client.Grant(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	for key, options := range map[string][]clientv3.OpOption{"strangers/a/1": {clientv3.WithLease(lease.ID)}, "strangers/a/2": nil} {
		if _, err := client.Put(t.Context(), key, "", options...); err != nil {
			t.Fatal(err)
		}
	}
	st, err := s.Inspect(t.Context(), "a")
	if err != nil || len(st.Queue) != 2 {
		t.Fatalf("%+v, %v, want two places", st, err)
	}
	for _, p := range st.Queue {
		leased := p.Holder.Owner == "strangers/a/1"
		if leased != (p.ExpiresIn == 0) || !leased && p.ExpiresIn > 0 {
			t.Errorf("%s expires in %v; has a lease: %v", p.Holder.Owner, p.ExpiresIn, leased)
		}
	}
}

// Logins expire, and rights change, while a store is open: it logs in again, holders keep
// their locks, and waiters get theirs.
func TestLoginExpires(t *testing.T) {
	t.Parallel()
	program, err := etcdtest.Current()
	if err != nil {
		t.Fatal(err)
	}
	c, client, enable := guarded(t, func() (string, error) { return program, nil }, "--auth-token-ttl=1")
	rights, err := etcdstore.Use{Lock: true}.Rights(urlOf(c.Endpoints()...), nil)
	if err != nil {
		t.Fatal(err)
	}
	allow(t, client, "me", rights)
	enable()
	root := native(t, c.Endpoints(), func(o *clientv3.Config) { o.Username, o.Password = "root", "rootword" })
	with := etcdstore.Options{Username: "me", Password: "secretword", Timeout: patience}
	s, other := open(t, c.Endpoints(), with), open(t, c.Endpoints(), with)
	l := request("a", 20*time.Second)
	acquire(t, s, l)
	done := waits(t, other, request("a", 20*time.Second))
	for i := range 3 {
		time.Sleep(1500 * time.Millisecond) // the login's TTL, which is what is tested
		if _, err := root.RoleGrantPermission(t.Context(), "me", fmt.Sprint("more", i), "", clientv3.PermissionType(clientv3.PermRead)); err != nil {
			t.Fatal(err)
		}
		if err := s.Renew(t.Context(), []store.Lease{l})[0]; err != nil {
			t.Errorf("renew: %v", err)
		}
	}
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
		t.Error(err)
	}
	gets(t, "after logins have expired", done)
}

// Six processes of "etcdctl lock" and six stores take turns. A process that is killed while
// it has the lock loses it when its lease is over.
func TestTurnsWithManyEtcdctl(t *testing.T) {
	t.Parallel()
	const each, turns = 6, 3
	var inside, theirs atomic.Int32
	enter := func() {
		if n := inside.Add(1); n != 1 {
			t.Errorf("%d holders at once", n)
		}
		time.Sleep(time.Millisecond)
		inside.Add(-1)
	}
	program, err := exec.LookPath("etcdctl")
	if err != nil {
		t.Fatal("etcdctl is not installed: on Debian and Ubuntu, sudo apt-get install -y etcd-client")
	}
	// etcdctl calls what for each turn, and unlocks when it returns.
	etcdctl := func(ttl string, what func(*exec.Cmd)) error {
		file := filepath.Join(t.TempDir(), "leave")
		cmd := exec.Command(program, "--endpoints="+server.Members[0].Addr, "lock", "--ttl="+ttl, "many/job", "--",
			"sh", "-c", `echo enter; while [ ! -e "$0" ]; do sleep 0.01; done`, file)
		cmd.Env = append(cmd.Environ(), "ETCDCTL_API=3")
		out, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "enter\n" {
			return fmt.Errorf("it printed %q, and ended with %w", line, errors.Join(err, cmd.Wait()))
		}
		what(cmd)
		return errors.Join(os.WriteFile(file, nil, 0o600), cmd.Wait())
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	var group sync.WaitGroup
	for range each {
		group.Go(func() {
			for range turns {
				// It goes on if it loses its lease, as a short one does on a busy machine.
				if err := etcdctl("60", func(*exec.Cmd) { enter(); theirs.Add(1) }); err != nil {
					t.Errorf("etcdctl: %v", err)
				}
			}
		})
		s := open(t, server.Endpoints(), etcdstore.Options{Prefix: "many"})
		group.Go(func() {
			for range turns {
				l := request("job", time.Minute)
				if _, err := s.Wait(ctx, store.WaitRequest{Lease: l}, nil); err != nil {
					t.Error(err)
					return
				}
				enter()
				if err := s.Release(ctx, store.ReleaseRequest{Lease: l}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if theirs.Load() != each*turns {
		t.Errorf("etcdctl had %d turns, want %d", theirs.Load(), each*turns)
	}
	killed := etcdctl("2", func(cmd *exec.Cmd) {
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
	})
	if killed == nil {
		t.Error("etcdctl was not killed")
	}
	s := open(t, server.Endpoints(), etcdstore.Options{Prefix: "many"})
	if _, err := s.Wait(ctx, store.WaitRequest{Lease: request("job", time.Minute)}, nil); err != nil {
		t.Errorf("wait after etcdctl was killed: %v", err)
	}
}
