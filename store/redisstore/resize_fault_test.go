package redisstore_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// permits judges a semaphore whose number of permits changes while it is in use.
type permits struct {
	t       *testing.T
	mu      sync.Mutex
	allowed map[int64]bool            // numbers by which attempts that begin now may be granted permits
	asking  map[string]map[int64]bool // for each attempt under way, those since it began
	holds   map[int64]string          // the holder of each slot
	turns   map[int64]int             // grants by each number
	resized int                       // resizes that have worked
	failed  int                       // that have not
	next    chan struct{}             // is closed when the next one has worked
	used    chan struct{}             // gets an element for each grant after that
	ended   chan struct{}             // gets an element when a resize has ended
}

func newPermits(t *testing.T, number int64) *permits {
	return &permits{t: t, allowed: map[int64]bool{number: true}, asking: map[string]map[int64]bool{}, holds: map[int64]string{}, turns: map[int64]int{}, next: make(chan struct{}), used: make(chan struct{}, leastUsed), ended: make(chan struct{}, 1)}
}

// leastUsed is how many grants there are by a number before the next resize.
const leastUsed = 8

// asks notes that an attempt begins.
func (p *permits) asks(r store.Lease) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asking[r.Owner] = map[int64]bool{}
	for n := range p.allowed {
		p.asking[r.Owner][n] = true
	}
}

// begins notes that a resize may give servers another number from now on.
func (p *permits) begins(to int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.allowed[to] = true
	for _, since := range p.asking {
		since[to] = true
	}
}

// worked notes that the number is to for all attempts that begin from now on.
func (p *permits) worked(to int64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case p.ended <- struct{}{}:
	default:
	}
	if err != nil {
		p.failed++
		return
	}
	p.resized++
	p.allowed = map[int64]bool{to: true}
	close(p.next)
	p.next = make(chan struct{})
}

// untilResized is closed when the next resize has worked.
func (p *permits) untilResized() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.next
}

// untilEnded waits until that many resizes have ended, which may wait for grants first, but no longer
// than most. It reports whether stop was closed before.
func (p *permits) untilEnded(stop <-chan struct{}, resizes int, most time.Duration) bool {
	select {
	case <-p.ended: // earlier
	default:
	}
	enough := time.After(most)
	for range resizes {
		select {
		case <-p.ended:
		case <-stop:
			return true
		case <-enough:
			return false
		}
	}
	return false
}

// enters judges a grant to the attempt of owner.
func (p *permits) enters(owner string, number, slot int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	since, most := p.asking[owner], int64(0)
	for n := range since {
		most = max(most, n)
	}
	if other, taken := p.holds[slot]; taken {
		p.t.Errorf("slot %d is granted to %s and held by %s", slot, owner, other)
	}
	if !since[number] {
		p.t.Errorf("%s is granted one of %d permits, and those that there may have been since it asked are %v", owner, number, since)
	}
	p.holds[slot] = owner
	if held := int64(len(p.holds)); held > most {
		p.t.Errorf("%s is granted a permit as holder number %d, and there have been at most %d permits since it asked", owner, held, most)
	}
	p.turns[number]++
	select {
	case p.used <- struct{}{}:
	default:
	}
}

func (p *permits) leaves(slot int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.holds, slot)
}

// over reports whether there were enough resizes, and grants by each number.
func (p *permits) over() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.resized >= 24 || p.t.Failed()
}

// troubles are what happens to one server at a time, and how it ends.
var troubles = []func(*redistest.Server, *faultproxy.Proxy) (begin, end func() error){
	// It hangs, and executes later what it was sent.
	func(s *redistest.Server, _ *faultproxy.Proxy) (begin, end func() error) { return s.Freeze, s.Thaw },
	// Its replies are lost.
	func(_ *redistest.Server, p *faultproxy.Proxy) (begin, end func() error) {
		return func() error { p.DropReplies(); return nil }, func() error { p.Pass(); return nil }
	},
	// It loses all connections.
	func(_ *redistest.Server, p *faultproxy.Proxy) (begin, end func() error) {
		return func() error { p.RefuseNew(); p.Cut(); return nil }, func() error { p.Pass(); return nil }
	},
}

// A semaphore over three servers changes between two and five permits while 16 clients hold it,
// wait for it and renew it, and one server at a time is cut off. There are never more holders
// than the larger number before a resize has worked, and no more than the new one for those that
// asked later.
func TestResizeWhileServersAreCutOff(t *testing.T) {
	t.Parallel() // it mostly waits
	servers := redistest.StartN(t, 3)
	u := &tunnel{leads: map[string]string{}}
	proxies := behind(t, servers)
	for i, s := range servers {
		u.leads[s.Addr()] = proxies[i].Addr()
	}
	another := func() *redisstore.Store {
		return open(t, addrs(servers), &redisstore.Options{NodeTimeout: 3 * time.Second, ConnectTimeout: long, Dial: u.dial})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	all := newPermits(t, 5)
	stop := make(chan struct{})
	var chaos, work sync.WaitGroup
	// While servers are cut off in turn, opening can fail.
	operator := another()
	clients := make([]*redisstore.Store, 16)
	for i := range clients {
		clients[i] = another()
	}
	chaos.Go(func() {
		for i := 0; ; i++ {
			begin, end := troubles[i%len(troubles)](servers[i%3], proxies[i%3])
			if err := begin(); err != nil {
				t.Error(err)
			}
			over := within(stop, 100*time.Millisecond) || all.untilEnded(stop, 1, time.Second)
			if err := end(); err != nil {
				t.Error(err)
			}
			// The second one has begun after the end of the trouble.
			if over || all.untilEnded(stop, 2, 5*time.Second) {
				return
			}
		}
	})
	work.Go(func() {
		from, to := int64(5), int64(2)
		for !all.over() && ctx.Err() == nil {
			all.begins(to)
			err := operator.Resize(ctx, "pool", store.Semaphore(from), store.Semaphore(to))
			if all.worked(to, err); err == nil {
				from, to = to, from
				for i := 0; i < leastUsed && !all.over(); i++ {
					select {
					case <-all.used:
					case <-ctx.Done():
					}
				}
			} else if !errors.Is(err, store.ErrQuorum) {
				t.Errorf("resize from %d to %d: %v", from, to, err)
				return
			}
		}
	})
	for _, s := range clients {
		work.Go(func() {
			number := int64(5)
			for !all.over() && ctx.Err() == nil {
				number = takesAPermit(ctx, s, all, number)
			}
		})
	}
	work.Wait()
	close(stop)
	chaos.Wait()
	t.Logf("%d resizes worked and %d did not; grants by each number: %v", all.resized, all.failed, all.turns)
	if !all.over() {
		t.Error("too few resizes have worked in the time, or too few permits were granted by each number")
	}
	if all.failed == 0 {
		t.Error("all resizes have worked, although servers were cut off")
	}
}

// within waits until stop is closed, and reports whether it was, within d.
func within(stop <-chan struct{}, d time.Duration) bool {
	select {
	case <-stop:
		return true
	case <-time.After(d):
		return false
	}
}

// takesAPermit takes a permit by that number, or learns that there is another, which it returns.
func takesAPermit(ctx context.Context, s *redisstore.Store, all *permits, number int64) int64 {
	r := shared("pool", store.Semaphore(number), 1)
	all.asks(r)
	asker := r.Owner
	waits, cancel := context.WithTimeout(ctx, 5*time.Second)
	grant, err := s.Wait(waits, store.WaitRequest{Lease: r}, nil)
	cancel()
	if kind, ok := errors.AsType[*store.KindError](err); ok && kind.InUse.Limit != number {
		return kind.InUse.Limit
	}
	if err != nil {
		if !errors.Is(err, store.ErrQuorum) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, store.ErrBusy) && !errors.Is(err, store.ErrKindMismatch) {
			all.t.Errorf("wait for one of %d permits: %v", number, err)
		}
		return number
	}
	if grant.Owner != "" {
		r.Owner = grant.Owner
	}
	all.enters(asker, number, grant.Slot)
	r.Slots = grant.Slots
	for range rand.IntN(4) {
		if rand.IntN(2) == 0 {
			within(all.untilResized(), 100*time.Millisecond)
		}
		if err := s.Renew(ctx, []store.Lease{r})[0]; err != nil && !errors.Is(err, store.ErrQuorum) && ctx.Err() == nil {
			all.t.Errorf("renew one of %d permits: %v", number, err)
		}
	}
	all.leaves(grant.Slot)
	if err := s.Release(ctx, store.ReleaseRequest{Lease: r, Renewed: true}); err != nil && !errors.Is(err, store.ErrQuorum) && ctx.Err() == nil {
		all.t.Errorf("release one of %d permits: %v", number, err)
	}
	return number
}
