package zkstore

import (
	"errors"
	"strings"
	"testing"
	"time"

	gozk "github.com/go-zookeeper/zk"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/zkstore/internal/zk"
)

// Clients of one identity can use a lock after one with another identity has broken a lease
// of it, and can break leases themselves.
func TestBreakByAnotherIdentity(t *testing.T) {
	t.Parallel() // it mostly waits
	o := &Options{servers: []string{shared.Addr}, Base: "/broken-by-others"}
	s := mustOpen(t, o)
	operator := *o
	operator.Auth = []Identity{{"digest", "operator:secret"}}
	by := mustOpen(t, &operator)
	l := request("a", 30*time.Second)
	mustAcquire(t, s, l)
	breaks(t, by, breakOf(t, by, l))
	mustRelease(t, s, l)
	next := request("a", 30*time.Second)
	mustAcquire(t, s, next)
	if st, err := s.Inspect(t.Context(), "a"); err != nil || st.Broken == nil || st.Broken.Owner != l.Owner {
		t.Errorf("inspect: %+v, %v, want the note", st, err)
	}
	breaks(t, s, breakOf(t, s, next))
	mustRelease(t, s, next)
}

// identities returns stores below an open base, of which each has an identity of its own: a digest
// that others cannot read, one whose locks all can read, and none.
func identities(t *testing.T, base string) (private, readable, nobody *engine) {
	t.Helper()
	if _, err := connect(t).Create(base, nil, gozk.FlagPersistent, gozk.WorldACL(gozk.PermAll)); err != nil {
		t.Fatal(err)
	}
	open := func(o Options) *engine {
		o.servers, o.Base = []string{shared.Addr}, base
		return mustOpen(t, &o)
	}
	return open(Options{Auth: []Identity{{"digest", "private:secret"}}}),
		open(Options{Auth: []Identity{{"digest", "readable:secret"}}, Readers: []Identity{{"world", "anyone"}}}),
		open(Options{})
}

// breakAll has each store acquire the lock and break its lease, and then removes the lock's node, as
// servers do.
func breakAll(t *testing.T, name string, stores ...*engine) {
	t.Helper()
	for i, s := range stores {
		l := request(name, 30*time.Second)
		mustAcquire(t, s, l)
		breaks(t, s, breakOf(t, s, l))
		if st, err := s.Inspect(t.Context(), name); err != nil || st.Broken == nil || st.Broken.Owner != l.Owner {
			t.Errorf("store %d inspects %q: %+v, %v, want the note about its lease", i, name, st, err)
		}
		mustRelease(t, s, l)
		tr, err := s.anyTree(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if there, _, err := tr.Delete(t.Context(), tr.dir(name), zk.AnyVersion); err != nil || !there {
			t.Fatalf("delete the lock's node: %v, %v", there, err)
		}
	}
}

// Clients of different identities below one base can break their own leases, of different locks.
func TestBreaksOfSeveralIdentities(t *testing.T) {
	t.Parallel() // it mostly waits
	private, readable, nobody := identities(t, "/several")
	breakAll(t, "of private", private)
	breakAll(t, "of readable", readable)
	breakAll(t, "of nobody", nobody)

	told := make(chan string, 100)
	defer nobody.NotifyBroken(func(owner string) { told <- owner })()
	l := request("of nobody", 30*time.Second)
	mustAcquire(t, nobody, l)
	breaks(t, nobody, breakOf(t, nobody, l))
	for owner := ""; owner != l.Owner; {
		select {
		case owner = <-told:
		case <-time.After(patience):
			t.Fatal("a holder whose identity did not break the first lease is not told")
		}
	}
}

// A client that cannot read the notes about a lock gets no lease of it, and learns which node it
// needs rights to: it would not know which late requests to refuse.
func TestHiddenNotes(t *testing.T) {
	t.Parallel() // it mostly waits
	private, _, nobody := identities(t, "/hidden")
	breakAll(t, "a", private)
	_, err := nobody.Acquire(t.Context(), store.AcquireRequest{Lease: request("a", 30*time.Second)})
	if !errors.Is(err, zk.ErrNoAuth) || !strings.Contains(err.Error(), "/hidden/%broken/a:") {
		t.Fatalf("acquire: %v, want an error that names /hidden/%%broken/a", err)
	}
	breakAll(t, "a", private)
	native := connect(t)
	if err := native.AddAuth("digest", []byte("private:secret")); err != nil {
		t.Fatal(err)
	}
	if err := native.Delete("/hidden/%broken/a", -1); err != nil {
		t.Fatal(err)
	}
	breakAll(t, "a", nobody)
}

// A client whose identity was given the base later can use locks of which leases were broken, and
// learns which node it needs rights to before it can break one.
func TestBreakAfterAChangeOfIdentity(t *testing.T) {
	t.Parallel() // it mostly waits
	native := connect(t)
	open := func(user string) *engine {
		return mustOpen(t, &Options{servers: []string{shared.Addr}, Base: "/changed", Auth: []Identity{{"digest", user + ":secret"}}})
	}
	breakAll(t, "a", open("before"))
	if err := native.AddAuth("digest", []byte("before:secret")); err != nil {
		t.Fatal(err)
	}
	admit := func(node string) {
		t.Helper()
		if _, err := native.SetACL(node, gozk.DigestACL(gozk.PermAll, "after", "secret"), -1); err != nil {
			t.Fatal(err)
		}
	}
	admit("/changed")
	admit("/changed/%broken/a")
	s := open("after")
	l := request("a", 30*time.Second)
	mustAcquire(t, s, l)
	b := breakOf(t, s, l)
	_, err := s.BreakLease(t.Context(), b)
	if !errors.Is(err, zk.ErrNoAuth) || strings.Count(err.Error(), "/changed") != 1 || !strings.Contains(err.Error(), "/changed/%broken:") {
		t.Errorf("break: %v, want an error that names /changed/%%broken only", err)
	}
	admit("/changed/%broken")
	breaks(t, s, b)
	if st, err := s.Inspect(t.Context(), "a"); err != nil || st.Broken == nil || st.Broken.Owner != l.Owner {
		t.Errorf("inspect: %+v, %v, want the note", st, err)
	}
}
