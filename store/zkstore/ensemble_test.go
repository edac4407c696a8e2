package zkstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/testenv/contest"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/internal/testenv/zktest"
	"github.com/leasehold-dev/leasehold/internal/validity"
	"github.com/leasehold-dev/leasehold/store"
)

// Members of an ensemble are killed, stand still, and are cut off from the others or from
// clients, while clients contend: no two of them have a lock at once that is for one, there are never too
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
	c := &contest.Contest{Name: "contended", TTL: 3 * time.Second}
	kinds := []*history{{kind: store.ReadWrite}, {kind: store.Semaphore(3)}}
	var wg sync.WaitGroup
	var stores []*engine
	var proxies []*faultproxy.Proxy
	var viaProxies []string
	for _, addr := range e.Addrs() {
		p, err := faultproxy.Listen(addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		proxies, viaProxies = append(proxies, p), append(viaProxies, p.Addr())
	}
	for i := range 3 {
		// Each prefers no member, but one cannot know more than its own.
		servers := viaProxies
		if i == 0 {
			servers = e.Addrs()[:1]
		}
		s := mustOpen(t, &Options{servers: servers})
		stores = append(stores, s)
		wg.Go(func() { c.Contend(ctx, t, s) })
		for _, k := range kinds {
			for range 2 {
				wg.Go(func() {
					roam(ctx, s, "contended "+k.kind.String(), k.kind, 3*time.Second, func(n stay) { k.add(t, n) }, func(err error) { t.Error(err) })
				})
			}
		}
	}
	if class := stores[0].Caps().Class; class != store.Consensus {
		t.Errorf("an ensemble of three gives %v, want %v", class, store.Consensus)
	}
	// Each client that knows all members gets the lock again.
	goesOn := func(what string) {
		t.Helper()
		c.GoesOn(t, what, patience, stores[1], stores[2])
		for _, k := range kinds {
			n := k.count()
			eventually.True(t, "holders of a "+k.kind.String()+" go on after "+what, func() bool { return k.count() > n+5 })
		}
	}
	goesOn("the start")
	tokensThroughEachMember(t, e)
	breaksThroughOtherMembers(t, e)

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

	for what, member := range map[string]func() (int, error){"a follower": e.Follower, "the leader": e.Leader} {
		i, err := member()
		if err != nil {
			t.Fatal(err)
		}
		e.Cut(i)
		goesOn(what + " was cut off")
		e.Heal(i)
		goesOn("it was connected again")
	}
	if leader, err = e.Leader(); err != nil {
		t.Fatal(err)
	}
	proxy := proxies[leader]
	for what, fail := range map[string]func(){"no answer of the leader arrived": proxy.DropReplies, "nothing reached the leader": proxy.Blackhole, "all was late": proxy.HoldAll} {
		fail()
		goesOn(what)
		proxy.Pass()
		goesOn("the leader answered again")
	}
	cancel()
	wg.Wait()
	heldThroughACut(t, e, e.Follower)
	heldThroughACut(t, e, e.Leader)
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

// tokensThroughEachMember checks that a grant has the token that all clients are shown,
// whichever member a client is connected to and whatever others write meanwhile, also if
// its place was made with a release.
func tokensThroughEachMember(t *testing.T, e *zktest.Ensemble) {
	t.Helper()
	var members []*engine
	for _, addr := range e.Addrs() {
		s := mustOpen(t, &Options{servers: []string{addr}})
		defer s.Close()
		members = append(members, s)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var others, wg sync.WaitGroup
	rejoined := make([]int, len(members))
	for i, s := range members {
		for n := range 4 {
			others.Go(func() {
				for ctx.Err() == nil {
					l := request(fmt.Sprintf("other writes %d of member %d", n, i), 10*time.Second)
					_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l})
					if err == nil {
						err = s.Release(t.Context(), store.ReleaseRequest{Lease: l})
					}
					if err != nil {
						t.Errorf("through member %d: %v", i, err)
						return
					}
				}
			})
		}
		wg.Go(func() { rejoined[i] = takeTurns(t, s, "tokens", 20, func() {}) })
	}
	wg.Wait()
	cancel()
	others.Wait()
	for i, n := range rejoined {
		if n == 0 {
			t.Errorf("through member %d no place was made with a release", i)
		}
	}
}

// breaksThroughOtherMembers checks that no member renews a lease that was broken through
// another one, whatever it does not know yet.
func breaksThroughOtherMembers(t *testing.T, e *zktest.Ensemble) {
	t.Helper()
	var members []*engine
	for _, addr := range e.Addrs() {
		s := mustOpen(t, &Options{servers: []string{addr}})
		defer s.Close()
		members = append(members, s)
	}
	for i := range 60 {
		s, other := members[i%3], members[(i+1+i/3%2)%3]
		for _, l := range eachKind(fmt.Sprintf("broken elsewhere %d ", i%3), 30*time.Second) {
			mustAcquire(t, s, l)
			breaks(t, other, breakOf(t, other, l))
			refusesRenewal(t, "renew through another member", s.Renew(t.Context(), []store.Lease{l})[0])
			mustRelease(t, s, l)
		}
	}
}

// heldThroughACut checks that a holder whose server is cut off from the others counts no
// renewal that a majority does not know of, although the server goes on answering that its
// place is there. The next holder gets the lock only after the first has stopped counting
// on it. So does a reader after a writer, and its token is larger.
func heldThroughACut(t *testing.T, e *zktest.Ensemble, member func() (int, error)) {
	cut, err := member()
	if err != nil {
		t.Fatal(err)
	}
	addrs := e.Addrs()
	behind := mustOpen(t, &Options{servers: addrs[cut : cut+1]})
	other := mustOpen(t, &Options{servers: append(addrs[:cut:cut], addrs[cut+1:]...)})
	defer other.Close()
	defer behind.Close()
	const ttl = 2 * time.Second
	mutex, writer := request(fmt.Sprintf("behind a cut of member %d", cut), ttl), request(fmt.Sprintf("a writer behind a cut of member %d", cut), ttl)
	writer.Kind, writer.Weight = store.ReadWrite, store.ReadWriteLimit
	isCut := make(chan struct{})
	var wg sync.WaitGroup
	for _, l := range []store.Lease{mutex, writer} {
		start := clock.System().Now()
		g := mustAcquire(t, behind, l)
		wg.Go(func() {
			<-isCut
			losesTo(t, behind, other, l, g.Token, validity.Until(start, ttl))
		})
	}
	e.Cut(cut)
	defer e.Heal(cut)
	close(isCut)
	wg.Wait()
}

// losesTo renews the lease until a holder in another store has the lock.
func losesTo(t *testing.T, behind, other *engine, l store.Lease, token fence.Token, until clock.Instant) {
	now := clock.System().Now
	type grant struct {
		from  clock.Instant
		token fence.Token
	}
	next := make(chan grant, 1)
	go func() {
		r := request(l.Name, 20*time.Second)
		r.Kind, r.Weight = l.Kind, 1
		n, err := other.Wait(t.Context(), store.WaitRequest{Lease: r}, nil)
		if err != nil {
			t.Errorf("wait: %v", err)
		}
		next <- grant{now(), n.Token}
	}()
	for {
		select {
		case n := <-next:
			if n.from < until {
				t.Errorf("the next holder had the lock %v before the lease of the first had ended", until.Sub(n.from))
			}
			if n.token <= token {
				t.Errorf("the next holder has token %v, want one above %v", n.token, token)
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

// servesNobodyAlone checks that a member without a majority grants nothing, also if it is
// allowed to serve readers.
func servesNobodyAlone(t *testing.T, e *zktest.Ensemble, s *engine) {
	e.Servers[0].Kill()
	e.Servers[1].Kill()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	var q *store.QuorumError
	_, err := s.Acquire(ctx, store.AcquireRequest{Lease: request("alone", 3*time.Second)})
	if !errors.As(err, &q) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("acquire without a majority: %v, want a *QuorumError or the end of the context", err)
	}
}
