package zkstore

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	gozk "github.com/go-zookeeper/zk"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/zkstore/internal/zk"
)

// patience bounds the wait for something that has to come.
const patience = 60 * time.Second

func request(name string, ttl time.Duration) store.Lease {
	return store.Lease{Name: name, Owner: store.NewOwner(), TTL: ttl}
}

func mustAcquire(t testing.TB, s *engine, l store.Lease) store.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l})
	if err != nil {
		t.Fatalf("acquire %q: %v", l.Name, err)
	}
	return g
}

func mustRelease(t testing.TB, s *engine, l store.Lease) {
	t.Helper()
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
		t.Fatalf("release %q: %v", l.Name, err)
	}
}

// proxied opens a store that reaches the server through a proxy.
func proxied(t *testing.T) (*engine, *faultproxy.Proxy) {
	t.Helper()
	p := faultproxy.New(t, shared.Addr)
	return mustOpen(t, &Options{servers: []string{p.Addr()}, Timeout: patience}), p
}

// A holder that is cut off learns that its lease is gone as soon as it is back, and not
// before: until then nothing is certain. The next holder has a larger token.
func TestSessionLostInAPause(t *testing.T) {
	t.Parallel() // it mostly waits
	s, p := proxied(t)
	other := mustOpen(t, &Options{servers: []string{shared.Addr}})
	l := request("paused", other.limits.Tick)
	g := mustAcquire(t, s, l)
	p.Blackhole()
	next := store.WaitRequest{Lease: request(l.Name, 20*time.Second)}
	n, err := other.Wait(t.Context(), next, nil)
	if err != nil || n.Token <= g.Token {
		t.Fatalf("the next holder has token %v (%v), want one above %v", n.Token, err, g.Token)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Renew(ctx, []store.Lease{l})[0]; err == nil || errors.Is(err, store.ErrNotHeld) {
		t.Errorf("renew while cut off: %v, want an error that says nothing of the lease", err)
	}
	p.Pass()
	eventually.True(t, "the holder learns that its lease is gone", func() bool {
		return errors.Is(s.Renew(t.Context(), []store.Lease{l})[0], store.ErrNotHeld)
	})
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); !errors.Is(err, store.ErrNotHeld) {
		t.Fatalf("release by the previous holder: %v, want %v", err, store.ErrNotHeld)
	}
	if st, err := other.Inspect(t.Context(), l.Name); err != nil || st.Token != n.Token {
		t.Fatalf("inspect after the previous holder came back: %+v, %v, want token %v", st, err, n.Token)
	}
	// The store goes on in a new session.
	again := request("paused/again", l.TTL)
	mustAcquire(t, s, again)
	mustRelease(t, s, again)
}

// A waiter whose session ends goes on waiting in a new one, and reports why.
func TestWaiterOutlivesItsSession(t *testing.T) {
	t.Parallel() // it mostly waits
	s, p := proxied(t)
	other := mustOpen(t, &Options{servers: []string{shared.Addr}})
	holder := request("outlives", 20*time.Second)
	mustAcquire(t, other, holder)
	w := store.WaitRequest{Lease: request(holder.Name, s.limits.Tick)}
	told := make(chan error, 100)
	done := make(chan error, 1)
	go func() {
		_, err := s.Wait(t.Context(), w, func(err error) {
			select {
			case told <- err:
			default:
			}
		})
		done <- err
	}()
	queued := func(n int) func() bool {
		return func() bool {
			st, err := other.Inspect(t.Context(), holder.Name)
			return err == nil && len(st.Queue) == n
		}
	}
	eventually.True(t, "the waiter is in the queue", queued(1))
	p.Blackhole()
	eventually.True(t, "its session has ended", queued(0))
	p.Pass()
	eventually.True(t, "it is in the queue again", queued(1))
	mustRelease(t, other, holder)
	if err := <-done; err != nil {
		t.Fatalf("wait: %v", err)
	}
	for trouble := false; !trouble; {
		select {
		case err := <-told:
			trouble = errors.Is(err, store.ErrQuorum)
		default:
			t.Fatal("the waiter was not told that its session ended")
		}
	}
}

// With an identity, other clients have no right to the locks, and readers may only inspect
// them.
func TestRights(t *testing.T) {
	t.Parallel() // it mostly waits
	open := func(auth ...Identity) (*engine, error) {
		return openEngine(t.Context(), &Options{servers: []string{shared.Addr}, Base: "/guarded/locks", Auth: auth,
			Readers: []Identity{{"digest", gozk.DigestACL(0, "reader", "r")[0].ID}}})
	}
	mine, err := open(Identity{"digest", "locks:secret"})
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Close()
	l := request("mine", 30*time.Second)
	mustAcquire(t, mine, l)

	reader, err := open(Identity{"digest", "reader:r"})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if st, err := reader.Inspect(t.Context(), l.Name); err != nil || st.Holder.Owner != l.Owner {
		t.Errorf("a reader inspects: %+v, %v, want the holder %s", st, err, l.Owner)
	}
	for _, name := range []string{l.Name, "another"} {
		var q *store.QuorumError
		if _, err := reader.Acquire(t.Context(), store.AcquireRequest{Lease: request(name, l.TTL)}); !errors.As(err, &q) || q.Transient() || !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("a reader acquires %q: %v, want a lasting *QuorumError for %v", name, err, zk.ErrNoAuth)
		}
		if _, err := reader.Wait(t.Context(), store.WaitRequest{Lease: request(name, l.TTL)}, nil); !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("a reader waits for %q: %v, want %v", name, err, zk.ErrNoAuth)
		}
	}
	if err := reader.Release(t.Context(), store.ReleaseRequest{Lease: l}); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("a reader releases: %v, want %v", err, zk.ErrNoAuth)
	}
	for _, now := range []bool{false, true} {
		b := breakOf(t, reader, l)
		b.Now = now
		if _, err := reader.BreakLease(t.Context(), b); !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("a reader breaks a lease: %v, want zk.ErrNoAuth", err)
		}
	}
	if err := mine.Renew(t.Context(), []store.Lease{l})[0]; err != nil {
		t.Errorf("renew after a reader has tried to break it: %v", err)
	}
	if st, err := mine.Inspect(t.Context(), l.Name); err != nil || st.Holder.Owner != l.Owner || len(st.Queue) != 0 {
		t.Errorf("inspect after a reader tried to change the lock: %+v, %v, want the holder %s and no waiter", st, err, l.Owner)
	}
	breaks(t, mine, breakOf(t, mine, l))
	if st, err := reader.Inspect(t.Context(), l.Name); err != nil || !st.Holder.Broken || st.Broken == nil || st.Broken.Owner != l.Owner {
		t.Errorf("a reader sees %+v, %v, want the broken lease and its note", st, err)
	}

	if stranger, err := open(); !errors.Is(err, zk.ErrNoAuth) && !errors.Is(err, zk.ErrInvalidACL) {
		if err == nil {
			_, err = stranger.Acquire(t.Context(), store.AcquireRequest{Lease: request("another", l.TTL)})
			stranger.Close()
		}
		if !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("a client without an identity opens and acquires: %v, want %v", err, zk.ErrNoAuth)
		}
	}
}

// Open fails in time if nothing answers, or if the server does not allow what is asked.
func TestOpenFails(t *testing.T) {
	t.Parallel() // it mostly waits
	p := faultproxy.New(t, shared.Addr)
	p.Blackhole()
	_, err := openEngine(t.Context(), &Options{servers: []string{p.Addr()}, Timeout: 100 * time.Millisecond})
	var q *store.QuorumError
	if !errors.As(err, &q) || q.Nodes[0].Outcome != store.TimedOut {
		t.Errorf("no answer: %v, want a *QuorumError with %v", err, store.TimedOut)
	}
	p.RefuseNew()
	if _, err := openEngine(t.Context(), &Options{servers: []string{p.Addr()}, Timeout: 300 * time.Millisecond}); !errors.As(err, &q) || !strings.Contains(err.Error(), p.Addr()+": ") {
		t.Errorf("no connection: %v, want a *QuorumError that says why %s did not answer", err, p.Addr())
	}
	if _, err := openEngine(t.Context(), &Options{servers: []string{shared.Addr}, MaxTTL: time.Hour}); !errors.Is(err, store.ErrUnsupported) {
		t.Errorf("a longer TTL than the server allows: %v, want %v", err, store.ErrUnsupported)
	}
	if _, err := openEngine(t.Context(), nil); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("no server: %v, want %v", err, store.ErrInvalid)
	}
	s := mustOpen(t, &Options{servers: []string{shared.Addr}})
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: store.Lease{Name: "x", Owner: "y", TTL: 5 * time.Second, Require: store.Consensus}}); !errors.Is(err, store.ErrUnsupported) || s.Caps().Class != store.CrashSafe {
		t.Errorf("one server gives %v, want %v; consensus required: %v, want %v", s.Caps().Class, store.CrashSafe, err, store.ErrUnsupported)
	}
}

// An identity is sent again if the answer to it is lost.
func TestLostAnswerToAnIdentity(t *testing.T) {
	t.Parallel() // it mostly waits
	p := faultproxy.New(t, shared.Addr)
	p.CutReplyTo("lost:identity", 0)
	s := mustOpen(t, &Options{servers: []string{p.Addr()}, Base: "/lost/identity", Auth: []Identity{{Scheme: "digest", ID: "lost:identity"}}, Timeout: patience})
	if n := p.Stats().Cut; n != 1 {
		t.Fatalf("%d answers were lost, want 1", n)
	}
	l := request("after", 10*time.Second)
	mustAcquire(t, s, l)
	mustRelease(t, s, l)
}
