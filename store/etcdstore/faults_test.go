package etcdstore_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold-dev/leasehold/internal/testenv/etcdtest"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/etcdstore"
)

// launch starts one etcd of the system's packages, for a test that harms it.
func launch(t *testing.T, o etcdtest.Options) *etcdtest.Cluster {
	t.Helper()
	var err error
	if o.Program, err = etcdtest.Installed(); err != nil {
		t.Fatal(err)
	}
	c, err := etcdtest.Launch(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// acquire acquires a lock that must be free.
func acquire(t *testing.T, s *store.Store, l store.Lease) store.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// waits starts a Wait and returns when it waits, with a channel for its result.
func waits(t *testing.T, s *store.Store, l store.Lease) <-chan error {
	t.Helper()
	told := make(chan struct{}, 1000)
	done := make(chan error, 1)
	go func() {
		_, err := s.Wait(t.Context(), store.WaitRequest{Lease: l}, func(error) { told <- struct{}{} })
		done <- err
	}()
	select {
	case <-told:
	case err := <-done:
		t.Fatalf("the wait for a held lock ended: %v", err)
	case <-time.After(patience):
		t.Fatal("the waiter does not report why it waits")
	}
	return done
}

func gets(t *testing.T, what string, done <-chan error) {
	t.Helper()
	select {
	case err := <-done:
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	case <-time.After(patience):
		t.Fatalf("%s: the waiter does not get the lock", what)
	}
}

// A renewal fails when the lease was revoked, and says that the lock is not held.
func TestRevokedLeaseIsNotRenewed(t *testing.T) {
	s := open(t, server.Endpoints(), etcdstore.Options{Prefix: "revoked"})
	l := request("a", time.Minute)
	acquire(t, s, l)
	if err := s.Renew(t.Context(), []store.Lease{l})[0]; err != nil {
		t.Fatal(err)
	}
	client := native(t, server.Endpoints())
	r, err := client.Get(t.Context(), "revoked/a/", clientv3.WithPrefix())
	if err != nil || len(r.Kvs) != 1 {
		t.Fatalf("keys of the lock: %v, %v, want 1", r, err)
	}
	if _, err := client.Revoke(t.Context(), clientv3.LeaseID(r.Kvs[0].Lease)); err != nil {
		t.Fatal(err)
	}
	if err := s.Renew(t.Context(), []store.Lease{l})[0]; !errors.Is(err, store.ErrNotHeld) {
		t.Errorf("renew after the lease was revoked: %v, want %v", err, store.ErrNotHeld)
	}
}

// A key that is deleted, and that another owner makes again under the same name, is not
// mistaken for the lease of the previous owner.
func TestKeyMadeAgainIsAnotherLease(t *testing.T) {
	s := open(t, server.Endpoints(), etcdstore.Options{Prefix: "again"})
	client := native(t, server.Endpoints())
	l := request("a", time.Minute)
	acquire(t, s, l)
	r, err := client.Get(t.Context(), "again/a/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	key, lease := string(r.Kvs[0].Key), clientv3.LeaseID(r.Kvs[0].Lease)
	if _, err := client.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Put(t.Context(), key, `{"owner":"other","seconds":60}`, clientv3.WithLease(lease)); err != nil {
		t.Fatal(err)
	}
	if err := s.Renew(t.Context(), []store.Lease{l})[0]; !errors.Is(err, store.ErrNotHeld) {
		t.Errorf("renew after another owner made the key: %v, want %v", err, store.ErrNotHeld)
	}
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); !errors.Is(err, store.ErrNotHeld) {
		t.Errorf("release after another owner made the key: %v, want %v", err, store.ErrNotHeld)
	}
	if st, err := s.Inspect(t.Context(), "a"); err != nil || st.Holder.Owner != "other" {
		t.Errorf("inspect: %+v, %v, want the owner other", st, err)
	}
}

// An owner that acquires a lock again through another handle does not learn from the first one
// that it does not hold it.
func TestOwnerWithTwoHandles(t *testing.T) {
	prefix := "two-" + rand.Text()
	a := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix})
	b := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix})
	l := request("a", time.Minute)
	move := func() {
		t.Helper()
		acquire(t, a, l)
		if err := b.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
			t.Fatal(err)
		}
		acquire(t, b, l)
	}
	acquire(t, b, request("other", time.Minute)) // so that b has another lease for l
	move()
	acquire(t, a, l)
	if err := a.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
		t.Error(err)
	}
	move()
	if err := a.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
		t.Errorf("release through the other handle: %v", err)
	}
	if err := a.Release(t.Context(), store.ReleaseRequest{Lease: l}); !errors.Is(err, store.ErrNotHeld) {
		t.Errorf("second release: %v, want %v", err, store.ErrNotHeld)
	}
	for range 50 { // during the release the lock is free, held, or free again
		acquire(t, a, l)
		done := make(chan error, 1)
		go func() { done <- a.Release(t.Context(), store.ReleaseRequest{Lease: l}) }()
		acquire(t, b, l)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := b.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil && !errors.Is(err, store.ErrNotHeld) {
			t.Error(err)
		}
	}
}

// Names of keys are used again: many turns at a lock leave few names behind.
func TestKeysAreUsedAgain(t *testing.T) {
	s := open(t, server.Endpoints(), etcdstore.Options{Prefix: "names"})
	client := native(t, server.Endpoints())
	ctx, cancel := context.WithCancel(t.Context())
	names := make(map[string]bool)
	watch := client.Watch(clientv3.WithRequireLeader(ctx), "names/a/", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	if r := <-watch; !r.Created {
		t.Fatal(r)
	}
	const turns = 40
	for range turns {
		l := request("a", time.Minute)
		acquire(t, s, l)
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
			t.Fatal(err)
		}
	}
	for n := 0; n < 2*turns; {
		r := <-watch
		for _, e := range r.Events {
			names[string(e.Kv.Key)] = true
			n++
		}
	}
	cancel()
	if len(names) != 1 {
		t.Errorf("%d turns of one owner at a time made %d keys, want 1", turns, len(names))
	}
}

// A waiter whose place was made by an attempt without an answer can come to own the lock
// before its next attempt. Its token is above all tokens of the previous owner.
func TestTokenOfPlaceWhoseAnswerWasLost(t *testing.T) {
	prefix := "late-" + rand.Text()
	first := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix})
	s := open(t, []string{server.Members[0].ProxyAddr()}, etcdstore.Options{Prefix: prefix, Timeout: patience})
	client := native(t, server.Endpoints())
	proxy := server.Members[0].Proxy
	defer proxy.Pass()
	warm, held, spare := request("warm", time.Minute), request("a", time.Minute), request("spare", time.Minute)
	acquire(t, first, warm)
	acquire(t, s, spare)
	done := waits(t, s, request("warm", time.Minute)) // from now on s makes its place with one request
	if err := first.Release(t.Context(), store.ReleaseRequest{Lease: warm}); err != nil {
		t.Fatal(err)
	}
	gets(t, "warm", done)
	former := acquire(t, first, held)
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: spare}); err != nil { // its lease is the next place's
		t.Fatal(err)
	}

	proxy.DropReplies()
	type result struct {
		store.Grant
		error
	}
	got := make(chan result, 1)
	go func() {
		g, err := s.Wait(t.Context(), store.WaitRequest{Lease: request("a", time.Minute)}, nil)
		got <- result{g, err}
	}()
	var places *clientv3.GetResponse
	eventually.True(t, "the waiter has a place", func() bool {
		var err error
		if places, err = client.Get(t.Context(), prefix+"/a/", clientv3.WithFirstCreate()...); err != nil {
			t.Fatal(err)
		}
		return count(t, client, prefix+"/a/") == 2
	})
	if _, err := client.Revoke(t.Context(), clientv3.LeaseID(places.Kvs[0].Lease)); err != nil {
		t.Fatal(err)
	}
	proxy.Pass()
	proxy.Cut()
	select {
	case r := <-got:
		if r.error != nil || r.Token <= former.Token {
			t.Errorf("token %v, %v, want more than %v, which the previous owner had", r.Token, r.error, former.Token)
		}
	case <-time.After(patience):
		t.Error("the waiter does not get the lock")
	}
}

// Locks can be acquired although all leases that are kept for later have been revoked.
func TestRevokedLeasesOfThePool(t *testing.T) {
	client := native(t, server.Endpoints())
	for _, waits := range []bool{false, true} {
		prefix := "pool-" + rand.Text()
		s := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix})
		var held []store.Lease
		for i := range 8 {
			l := request(fmt.Sprint("lock", i), time.Minute)
			acquire(t, s, l)
			held = append(held, l)
		}
		keys, err := client.Get(t.Context(), prefix+"/", clientv3.WithPrefix())
		if err != nil || len(keys.Kvs) != len(held) {
			t.Fatalf("keys: %v, %v, want %d", keys, err, len(held))
		}
		for _, l := range held {
			if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
				t.Fatal(err)
			}
		}
		for _, kv := range keys.Kvs {
			if _, err := client.Revoke(t.Context(), clientv3.LeaseID(kv.Lease)); err != nil {
				t.Fatal(err)
			}
		}
		if !waits {
			acquire(t, s, request("a", time.Minute))
		} else if _, err := s.Wait(t.Context(), store.WaitRequest{Lease: request("a", time.Minute)}, nil); err != nil {
			t.Error(err)
		}
	}
}

// A waiter gets the lock although the history was compacted under its watches, and
// although the holder died.
func TestCompactedWhileWaiting(t *testing.T) {
	s := open(t, server.Endpoints(), etcdstore.Options{Prefix: "compacted"})
	client := native(t, server.Endpoints())
	for _, dies := range []bool{false, true} {
		l := request("a", time.Minute)
		acquire(t, s, l)
		done := waits(t, s, request("a", 6*time.Second))
		for range 3 {
			r, err := client.Put(t.Context(), "compacted-elsewhere", "x")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := client.Compact(t.Context(), r.Header.Revision); err != nil {
				t.Fatal(err)
			}
		}
		if dies {
			r, err := client.Get(t.Context(), "compacted/a/", clientv3.WithFirstCreate()...)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := client.Revoke(t.Context(), clientv3.LeaseID(r.Kvs[0].Lease)); err != nil {
				t.Fatal(err)
			}
		} else if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
			t.Fatal(err)
		}
		gets(t, fmt.Sprintf("holder dies: %v", dies), done)
		st, err := s.Inspect(t.Context(), "a")
		if err != nil || !st.Held {
			t.Fatal(st, err)
		}
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: store.Lease{Name: "a", Owner: st.Holder.Owner, TTL: time.Minute}}); err != nil {
			t.Error(err)
		}
	}
}

// Leases survive a server that is killed and started again. Waiters go on waiting, and
// tokens do not go back.
func TestEtcdKilled(t *testing.T) {
	t.Parallel()
	c := launch(t, etcdtest.Options{})
	s := open(t, c.Endpoints(), etcdstore.Options{Timeout: 30 * time.Second})
	l := request("a", time.Minute)
	g := acquire(t, s, l)
	next := request("a", time.Minute)
	done := waits(t, s, next)
	c.Members[0].Kill()
	if err := c.Members[0].Restart(); err != nil {
		t.Fatal(err)
	}
	if err := s.Renew(t.Context(), []store.Lease{l})[0]; err != nil {
		t.Errorf("renew after the restart: %v", err)
	}
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
		t.Errorf("release after the restart: %v", err)
	}
	gets(t, "after the restart", done)
	if st, err := s.Inspect(t.Context(), "a"); err != nil || st.Holder.Owner != next.Owner || st.Token <= g.Token {
		t.Errorf("inspect: %+v, %v, want the waiter with a token above %v", st, err, g.Token)
	}
}

// A server without space grants no lock and says why. A lease that it has granted can be
// renewed and released, and the lock can be acquired once there is space.
func TestEtcdWithoutSpace(t *testing.T) {
	c := launch(t, etcdtest.Options{Args: []string{"--quota-backend-bytes=4194304"}})
	s := open(t, c.Endpoints(), etcdstore.Options{})
	client := native(t, c.Endpoints())
	l := request("a", time.Minute)
	acquire(t, s, l)
	done := waits(t, s, request("a", time.Minute))
	var err error
	for err == nil {
		_, err = client.Put(t.Context(), "big", strings.Repeat("x", 1<<20))
	}
	_, err = s.Acquire(t.Context(), store.AcquireRequest{Lease: request("b", time.Minute)})
	var q *store.QuorumError
	if !errors.As(err, &q) || !strings.Contains(err.Error(), "defrag") {
		t.Errorf("acquire without space: %v, want a *QuorumError that advises to defrag", err)
	}
	later := open(t, c.Endpoints(), etcdstore.Options{})
	if st, err := later.Inspect(t.Context(), "a"); err != nil || !st.Held {
		t.Errorf("inspect without space through a store that was opened then: %+v, %v, want the holder", st, err)
	}
	if st, err := s.Inspect(t.Context(), "b"); err != nil || st.Held {
		t.Errorf("inspect a lock that was refused: %+v, %v, want it free", st, err)
	}
	if err := s.Renew(t.Context(), []store.Lease{l})[0]; err != nil {
		t.Errorf("renew without space: %v", err)
	}
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
		t.Errorf("release without space: %v", err)
	}
	if err := <-done; !errors.As(err, &q) || !strings.Contains(err.Error(), "defrag") {
		t.Errorf("wait without space: %v, want a *QuorumError that advises to defrag", err)
	}
	if _, err := client.Delete(t.Context(), "big"); err != nil {
		t.Fatal(err)
	}
	status, err := client.Status(t.Context(), c.Endpoints()[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Compact(t.Context(), status.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Defragment(t.Context(), c.Endpoints()[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := client.AlarmDisarm(t.Context(), &clientv3.AlarmMember{}); err != nil {
		t.Fatal(err)
	}
	r := store.WaitRequest{Lease: request("a", time.Minute)}
	if _, err := s.Wait(t.Context(), r, nil); err != nil {
		t.Errorf("wait once there is space again: %v", err)
	}
}

// A store that is open while a backup is restored grants nothing for the longest TTL, nor
// while the server could issue tokens again that it has issued before.
func TestRestoredBackupIsNoticed(t *testing.T) {
	t.Parallel()
	c := launch(t, etcdtest.Options{})
	s := open(t, c.Endpoints(), etcdstore.Options{MaxTTL: 2 * time.Second, Timeout: 30 * time.Second})
	backup, err := c.Members[0].Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var last store.Grant
	for range 20 {
		l := request("a", time.Second)
		last = acquire(t, s, l)
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Members[0].Restore(backup); err != nil {
		t.Fatal(err)
	}
	refused := func() *store.QuorumError {
		t.Helper()
		_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("a", time.Second)})
		var q *store.QuorumError
		if !errors.As(err, &q) || q.Count(store.Quarantined) != 1 {
			t.Fatalf("acquire in restored data: %v, want one quarantined server", err)
		}
		if strings.Contains(q.Error(), "bootstrap") {
			t.Fatalf("acquire in restored data: %v, but bootstrap is for Redis", err)
		}
		return q
	}
	q := refused()
	if _, waits := q.OpensIn(); !waits {
		t.Errorf("the error does not say how long the quarantine lasts: %v", q)
	}
	for _, waits := q.OpensIn(); waits; _, waits = q.OpensIn() {
		time.Sleep(50 * time.Millisecond)
		q = refused()
	}
	if !strings.Contains(q.Error(), "--bump-revision") {
		t.Errorf("while tokens could be issued again: %v, want advice to use --bump-revision", q)
	}
	client := native(t, c.Endpoints())
	for {
		r, err := client.Put(t.Context(), "elsewhere", "x")
		if err != nil {
			t.Fatal(err)
		}
		if r.Header.Revision > int64(last.Token)+8 {
			break
		}
	}
	if g := acquire(t, s, request("a", time.Second)); g.Token <= last.Token {
		t.Errorf("token %v after %v, want a larger one", g.Token, last.Token)
	}
}

// A program that begins after a backup was restored sees in the members' logs that it was.
func TestExamineSeesARestoredBackup(t *testing.T) {
	c := launch(t, etcdtest.Options{})
	client := native(t, c.Endpoints())
	for range 50 {
		if _, err := client.Put(t.Context(), "elsewhere", "x"); err != nil {
			t.Fatal(err)
		}
	}
	restored := func(o etcdstore.Options) bool {
		t.Helper()
		o.Timeout = 30 * time.Second
		e, err := etcdstore.Examine(t.Context(), urlOf(c.Endpoints()...), &o)
		if err != nil || e.Unusable != nil {
			t.Fatalf("%+v, %v, want a cluster that can be used", e, err)
		}
		return e.Restored
	}
	if restored(etcdstore.Options{}) {
		t.Error("a cluster that was never restored looks restored")
	}
	backup, err := c.Members[0].Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Members[0].Restore(backup); err != nil {
		t.Fatal(err)
	}
	if !restored(etcdstore.Options{}) {
		t.Error("a cluster that was restored from a backup does not look so")
	}
	if restored(etcdstore.Options{Prefix: "raised", Floor: 1 << 40}) {
		t.Error("locks with a floor of tokens are reported because of a backup")
	}
}

// The first store with a floor fixes it for all others with the prefix.
func TestFloorOfTokens(t *testing.T) {
	const floor = 1 << 40
	o := etcdstore.Options{Prefix: "floor"}
	with := o
	with.Floor = floor
	s := open(t, server.Endpoints(), with)
	if g := acquire(t, s, request("a", time.Minute)); g.Token <= floor {
		t.Errorf("token %v, want more than %v", g.Token, with.Floor)
	}
	if g := acquire(t, open(t, server.Endpoints(), o), request("b", time.Minute)); g.Token <= floor {
		t.Errorf("token %v of a store that was opened without a floor, want more than %v", g.Token, with.Floor)
	}
	with.Floor++
	if _, err := etcdstore.Open(t.Context(), urlOf(server.Endpoints()...), &with); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("open with another floor: %v, want %v", err, store.ErrInvalid)
	}
}

// Debian's version of etcd gives no class above efficiency, and the error says why.
func TestClassOfAnOldVersion(t *testing.T) {
	s := open(t, server.Endpoints(), etcdstore.Options{Prefix: "class"})
	status, err := native(t, server.Endpoints()).Status(t.Context(), server.Endpoints()[0])
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(status.Version, "3.4.2") {
		t.Logf("etcd %s is not known to have the defect", status.Version)
		return
	}
	l := request("a", time.Minute)
	l.Require = store.CrashSafe
	_, err = s.Acquire(t.Context(), store.AcquireRequest{Lease: l})
	if !errors.Is(err, store.ErrUnsupported) || !strings.Contains(err.Error(), "3.4.31") {
		t.Errorf("acquire with a class that etcd %s cannot give: %v, want %v and the version 3.4.31", status.Version, err, store.ErrUnsupported)
	}
}

// One member of a current version is crash-safe.
func TestClassOfOneMember(t *testing.T) {
	program, err := etcdtest.Current()
	if err != nil {
		t.Fatal(err)
	}
	c, err := etcdtest.Launch(etcdtest.Options{Program: program})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	s := open(t, c.Endpoints(), etcdstore.Options{})
	if class := s.Caps().Class; class != store.CrashSafe {
		t.Errorf("class %v, want crash-safe", class)
	}
	e, err := etcdstore.Examine(t.Context(), urlOf(c.Endpoints()...), nil)
	if err != nil || e.Unusable != nil || e.Voters != 1 || len(e.Members) != 1 || e.Members[0].Err != nil || e.Members[0].Version == "" {
		t.Errorf("examine: %+v, %v, want one usable voter with a version", e, err)
	}
}

// A waiter that comes with a release can have the etcd lease, and so the key, of a waiter
// of the same process that gave up, and that the holder still takes for the next one.
func TestRejoinInThePlaceOfAWaiterThatGaveUp(t *testing.T) {
	prefix := "gaveup-" + rand.Text()
	client := native(t, server.Endpoints())
	s := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix})
	other := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix})
	for _, behind := range []bool{false, true} {
		first, l := request("a", time.Minute), request("a", time.Minute)
		acquire(t, other, first)
		holds := waits(t, s, l)
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() {
			_, err := s.Wait(ctx, store.WaitRequest{Lease: request("a", time.Minute)}, nil)
			gone <- err
		}()
		eventually.True(t, "there are a holder and two waiters", func() bool { return count(t, client, prefix+"/a/") == 3 })
		next, last := make(<-chan error), request("a", time.Minute)
		if behind {
			next = waits(t, other, last)
		}
		release(t, other, first)
		gets(t, "the holder", holds)
		before := count(t, client, prefix+"/a/")
		cancel()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		eventually.True(t, "the place of the waiter is gone", func() bool { return count(t, client, prefix+"/a/") != before })
		again := request("a", time.Minute)
		queued, err := s.ReleaseAndRejoin(t.Context(), store.ReleaseRequest{Lease: l}, store.WaitRequest{Lease: again})
		if err != nil || queued != behind {
			t.Errorf("with others behind: %v: queued: %v, %v", behind, queued, err)
		}
		if behind {
			gets(t, "the next one", next)
			release(t, other, last)
			if _, err := s.Wait(t.Context(), store.WaitRequest{Lease: again}, nil); err != nil {
				t.Fatal(err)
			}
			release(t, s, again)
		}
		vanishes(t, client, prefix)
	}
}

// More leases than etcd allows operations in a transaction are renewed by one call.
func TestManyLeasesAreRenewed(t *testing.T) {
	s := open(t, server.Endpoints(), etcdstore.Options{Prefix: "crowd-" + rand.Text()})
	var held []store.Lease
	for i := range 70 {
		l := request(fmt.Sprint("lock", i), time.Minute)
		permit := as(request(fmt.Sprint("permit", i), time.Minute), store.Semaphore(2), 1) // it has a slot, which is read too
		acquire(t, s, l)
		acquire(t, s, permit)
		held = append(held, l, permit)
	}
	for i, err := range s.Renew(t.Context(), held) {
		if err != nil {
			t.Fatalf("renew lease %d of %d: %v", i, len(held), err)
		}
	}
}
