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
// clients contend: no two of them have the lock at once, tokens rise, and they go on.
func TestZooKeeperEnsemble(t *testing.T) {
	t.Parallel() // it mostly waits
	e, err := zktest.LaunchEnsemble(3, zktest.Options{Tick: 500 * time.Millisecond, Settings: []string{"maxSessionTimeout=40000"}, Properties: []string{"readonlymode.enabled=true"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h := &holds{}
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
	}
	if c := stores[0].Caps().Class; c != store.Consensus {
		t.Errorf("an ensemble of three gives %v", c)
	}
	goesOn := func(what string) {
		t.Helper()
		n := h.count()
		eventually(t, "clients go on after "+what, func() bool { return h.count() > n+5 })
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
func heldThroughACut(t *testing.T, e *zktest.Ensemble) {
	const ttl = 2 * time.Second
	now := clock.System().Now
	follower, err := e.Follower()
	if err != nil {
		t.Fatal(err)
	}
	addrs := e.Addrs()
	behind := mustOpen(t, &Options{Servers: addrs[follower : follower+1]})
	other := mustOpen(t, &Options{Servers: append(addrs[:follower:follower], addrs[follower+1:]...)})
	defer other.Close()
	defer behind.Close()
	l := request("behind a cut", ttl)
	start := now()
	g := mustAcquire(t, behind, l)
	until := validity.Until(start, ttl)
	next := make(chan hold, 1)
	go func() {
		n, err := other.Wait(t.Context(), store.WaitRequest{Lease: request(l.Name, 20*time.Second)}, nil)
		if err != nil {
			t.Errorf("wait: %v", err)
		}
		next <- hold{from: now(), token: n.Token}
	}()
	e.Cut(follower)
	defer e.Heal(follower)
	for {
		select {
		case n := <-next:
			if n.from < until {
				t.Errorf("the next holder had the lock %v before the first could know", until.Sub(n.from))
			}
			if n.token <= g.Token {
				t.Errorf("token %v after %v", n.token, g.Token)
			}
			return
		default:
		}
		sent := now()
		ctx, cancel := context.WithTimeout(t.Context(), validity.RenewAfter(ttl))
		err := behind.Renew(ctx, []store.Lease{l})[0]
		cancel()
		if err == nil && sent < until {
			until = max(until, validity.Until(sent, ttl))
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
