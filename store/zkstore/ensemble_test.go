package zkstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/testenv/zktest"
	"github.com/leasehold-dev/leasehold/internal/validity"
	"github.com/leasehold-dev/leasehold/store"
)

// holds are what the holders of one lock believed: from when to when they had it.
type holds struct {
	mu  sync.Mutex
	all []hold
}

type hold struct {
	from, to clock.Instant
	token    fence.Token
}

// add adds a hold, and fails the test if it overlaps with another or has not the larger
// token.
func (h *holds) add(t *testing.T, n hold) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range h.all {
		if n.from < o.to && o.from < n.to {
			t.Errorf("one had the lock with token %v for %v when the other had it with %v for %v", o.token, o.to.Sub(o.from), n.token, n.to.Sub(n.from))
		}
		if (n.from < o.from) != (n.token < o.token) {
			t.Errorf("token %v was granted %v after %v", n.token, n.from.Sub(o.from), o.token)
		}
	}
	h.all = append(h.all, n)
}

func (h *holds) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.all)
}

// contend acquires a lock again and again, and holds it for a moment, renewing it at
// times.
func (h *holds) contend(ctx context.Context, t *testing.T, s *Store, name string) {
	const ttl = 3 * time.Second
	now := clock.System().Now
	for ctx.Err() == nil {
		r := store.WaitRequest{Lease: request(name, ttl)}
		start := now()
		g, err := s.Wait(ctx, r, nil)
		if err != nil {
			if ctx.Err() == nil {
				t.Errorf("wait: %v", err)
			}
			continue
		}
		got := hold{from: now(), to: validity.Until(start.Add(g.Since), ttl), token: g.Token}
		for range rand.IntN(4) {
			time.Sleep(rand.N(20 * time.Millisecond))
			sent := now()
			limited, cancel := context.WithTimeout(ctx, validity.RenewAfter(ttl))
			err := s.Renew(limited, []store.Lease{r.Lease})[0]
			cancel()
			if err == nil && sent < got.to {
				got.to = max(got.to, validity.Until(sent, ttl))
			}
		}
		got.to = min(got.to, now()) // it stops before it releases
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), ttl)
		_ = s.Release(limited, store.ReleaseRequest{Lease: r.Lease})
		cancel()
		if got.from < got.to {
			h.add(t, got)
		}
	}
}

// Members of an ensemble are killed, stand still, and are cut off from the others, while
// clients contend: no two of them have a lock at once that is for one, there are never too
// many holders of a semaphore and no reader beside a writer, tokens rise, and all go on.
func TestZooKeeperEnsemble(t *testing.T) {
	t.Parallel() // it mostly waits
	e, err := zktest.LaunchEnsemble(3, zktest.Options{Tick: 500 * time.Millisecond, Settings: []string{"maxSessionTimeout=40000"}, Properties: []string{"readonlymode.enabled=true"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h, kinds := &holds{}, []*history{{kind: store.ReadWrite}, {kind: store.Semaphore(3)}}
	var wg sync.WaitGroup
	var stores []*Store
	for i := range 3 {
		// Each prefers no member, but one cannot know more than its own.
		servers := e.Addrs()
		if i == 0 {
			servers = servers[:1]
		}
		s := mustOpen(t, &Options{Servers: servers})
		stores = append(stores, s)
		wg.Go(func() { h.contend(ctx, t, s, "contended") })
		for _, k := range kinds {
			for range 2 {
				wg.Go(func() {
					roam(ctx, s, "contended "+k.kind.String(), k.kind, 3*time.Second, func(n stay) { k.add(t, n) }, func(err error) { t.Error(err) })
				})
			}
		}
	}
	if c := stores[0].Caps().Class; c != store.Consensus {
		t.Errorf("an ensemble of three gives %v", c)
	}
	goesOn := func(what string) {
		t.Helper()
		n := h.count()
		eventually(t, "clients go on after "+what, func() bool { return h.count() > n+5 })
		for _, k := range kinds {
			n := k.count()
			eventually(t, "holders of a "+k.kind.String()+" go on after "+what, func() bool { return k.count() > n+5 })
		}
	}
	goesOn("the start")

	leader, err := e.Leader()
	if err != nil {
		t.Fatal(err)
	}
	e.Servers[leader].Kill()
	goesOn("the leader was killed")
	if err := e.Servers[leader].Restart(); err != nil {
		t.Fatal(err)
	}
	goesOn("it came back")

	if leader, err = e.Leader(); err != nil {
		t.Fatal(err)
	}
	if err := e.Servers[leader].Freeze(); err != nil {
		t.Fatal(err)
	}
	goesOn("the leader stood still")
	if err := e.Servers[leader].Thaw(); err != nil {
		t.Fatal(err)
	}
	goesOn("it went on")

	follower, err := e.Follower()
	if err != nil {
		t.Fatal(err)
	}
	e.Cut(follower)
	goesOn("a follower was cut off")
	e.Heal(follower)
	goesOn("it was connected again")
	cancel()
	wg.Wait()
	heldThroughACut(t, e)
	servesNobodyAlone(t, e, stores[1])
	// Stores that are closed wait for clean-up, and so for a majority.
	for _, s := range e.Servers[:2] {
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range stores {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// heldThroughACut: a holder whose server is cut off from the leader counts no renewal that
// the leader does not know of, although the server goes on answering that its place is
// there. The next holder gets the lock only after the first has stopped to count on it.
// So does a reader after a writer, and its token is larger.
func heldThroughACut(t *testing.T, e *zktest.Ensemble) {
	follower, err := e.Follower()
	if err != nil {
		t.Fatal(err)
	}
	addrs := e.Addrs()
	behind := mustOpen(t, &Options{Servers: addrs[follower : follower+1]})
	other := mustOpen(t, &Options{Servers: append(addrs[:follower:follower], addrs[follower+1:]...)})
	defer other.Close()
	defer behind.Close()
	const ttl = 2 * time.Second
	mutex, writer := request("behind a cut", ttl), request("a writer behind a cut", ttl)
	writer.Kind, writer.Weight = store.ReadWrite, store.ReadWriteLimit
	cut := make(chan struct{})
	var wg sync.WaitGroup
	for _, l := range []store.Lease{mutex, writer} {
		start := clock.System().Now()
		g := mustAcquire(t, behind, l)
		wg.Go(func() {
			<-cut
			losesTo(t, behind, other, l, g.Token, validity.Until(start, ttl))
		})
	}
	e.Cut(follower)
	defer e.Heal(follower)
	close(cut)
	wg.Wait()
}

// losesTo renews the lease until a holder in another store has the lock.
func losesTo(t *testing.T, behind, other *Store, l store.Lease, token fence.Token, until clock.Instant) {
	now := clock.System().Now
	next := make(chan hold, 1)
	go func() {
		r := request(l.Name, 20*time.Second)
		r.Kind, r.Weight = l.Kind, 1
		n, err := other.Wait(t.Context(), store.WaitRequest{Lease: r}, nil)
		if err != nil {
			t.Errorf("wait: %v", err)
		}
		next <- hold{from: now(), token: n.Token}
	}()
	for {
		select {
		case n := <-next:
			if n.from < until {
				t.Errorf("the next holder had the lock %v before the first could know", until.Sub(n.from))
			}
			if n.token <= token {
				t.Errorf("token %v after %v", n.token, token)
			}
			return
		default:
		}
		sent := now()
		ctx, cancel := context.WithTimeout(t.Context(), validity.RenewAfter(l.TTL))
		err := behind.Renew(ctx, []store.Lease{l})[0]
		cancel()
		if err == nil && sent < until {
			until = max(until, validity.Until(sent, l.TTL))
		}
	}
}

// servesNobodyAlone: a member without a majority grants nothing, also if it is allowed to
// serve readers.
func servesNobodyAlone(t *testing.T, e *zktest.Ensemble, s *Store) {
	e.Servers[0].Kill()
	e.Servers[1].Kill()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	var q *store.QuorumError
	_, err := s.Acquire(ctx, store.AcquireRequest{Lease: request("alone", 3*time.Second)})
	if !errors.As(err, &q) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("acquire without a majority: %v", err)
	}
}
