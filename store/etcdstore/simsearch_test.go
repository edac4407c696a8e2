package etcdstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/testenv/virtual"
	"github.com/leasehold-dev/leasehold/store"
)

// TestSearch lets random clients use two locks of a simulated cluster, whose members, network and
// leaders fail as simCluster says, and judges what they were told. LEASEHOLD_ETCD_SEEDS is how many
// seeds it takes, and LEASEHOLD_ETCD_SEED the first of them.
func TestSearch(t *testing.T) {
	defer func(was chan struct{}) { valCtxCh = was }(valCtxCh)
	seeds, first := 20, uint64(1)
	if s := os.Getenv("LEASEHOLD_ETCD_SEEDS"); s != "" {
		seeds, _ = strconv.Atoi(s)
	}
	if s := os.Getenv("LEASEHOLD_ETCD_SEED"); s != "" {
		first, _ = strconv.ParseUint(s, 10, 64)
	}
	for i := range uint64(seeds) {
		seed := first + i
		ok := t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { search(t, seed) })
		})
		if !ok {
			t.FailNow()
		}
	}
}

// searched are the names of the locks.
var searched = []string{"a", "b"}

// simWorld is one run.
type simWorld struct {
	c     *simCluster
	kind  store.Kind
	mu    sync.Mutex
	locks map[string]*simLock
	// broken are the owners whose leases an operator breaks, which has no end that could be judged.
	broken map[string]bool
	tally  map[string]int
	wrong  []string
}

// simLock is what was told of one lock.
type simLock struct {
	holds []*simHold
	token fence.Token // the largest that was granted, to that owner
	last  string
}

// simHold is a lease that a worker was told it has.
type simHold struct {
	of    store.Lease
	token fence.Token
	slot  int64
	until time.Time // its validity
	gone  bool      // it is released, or known to be lost
	moved bool      // an earlier attempt of the owner went by way of another store
}

func search(t *testing.T, seed uint64) {
	valCtxCh = make(chan struct{})
	w := &simWorld{c: newSimCluster(seed), tally: map[string]int{}, broken: map[string]bool{}, locks: map[string]*simLock{}}
	for _, name := range searched {
		w.locks[name] = &simLock{}
	}
	rng := rand.New(rand.NewPCG(seed, 2))
	w.c.rarely = 1 + rng.IntN(3)
	w.kind = []store.Kind{{}, {}, store.Semaphore(2), store.ReadWrite}[rng.IntN(4)]
	ctx, cancel := context.WithCancel(t.Context())
	lives := make(chan struct{})
	go func() { w.c.live(ctx); close(lives) }()
	var stores []*store.Store
	for range 3 {
		stores = append(stores, w.open(t))
	}
	w.judged(func() { w.c.calm = false })
	over, end := context.WithTimeout(ctx, time.Minute)
	var group sync.WaitGroup
	for i := range 1 + rng.IntN(6) {
		k := &simWorker{w: w, s: stores[i%3], other: stores[(i+1)%3], id: i, rng: rand.New(rand.NewPCG(seed, uint64(i+10)))}
		group.Go(func() { k.work(over) })
	}
	group.Go(func() { w.operate(over, stores[0], rand.New(rand.NewPCG(seed, 3))) })
	group.Wait()
	end()
	w.judged(func() { w.c.calm = true })
	time.Sleep(20 * time.Second) // all leases are over
	w.ends(stores)
	for _, s := range stores {
		_ = s.Close()
	}
	time.Sleep(20 * time.Second)
	for _, k := range slices.Concat(w.c.left("leasehold/a/"), w.c.left("leasehold/b/"), w.c.left("leasehold/!slots/"), w.c.left("leasehold/!inbox/")) {
		w.finds("key %s is left", k)
	}
	cancel()
	<-lives
	w.c.stop()
	time.Sleep(20 * time.Second)
	w.wrong = append(w.wrong, w.c.ghosts...)
	t.Logf("%v: %v", w.kind, w.tally)
	if len(w.wrong) > 0 {
		t.Errorf("seed %d, %v:\n%s", seed, w.kind, strings.Join(w.wrong, "\n"))
		if dir := os.Getenv("LEASEHOLD_ETCD_TRACE"); dir != "" {
			_ = os.WriteFile(fmt.Sprintf("%s/%d.txt", dir, seed), []byte(strings.Join(w.c.trace, "\n")), 0o644)
		}
	}
}

// open opens a store whose clock is that of the bubble.
func (w *simWorld) open(t *testing.T) *store.Store {
	o, err := Options{Timeout: 5 * time.Second, DialOptions: []grpc.DialOption{grpc.WithContextDialer(w.c.dial)}}.checked()
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		s := newEngine(w.c.endpoints(), o)
		s.clock = virtual.Clock()
		if err = s.open(context.Background()); err == nil {
			return store.New(s)
		}
		s.Close()
	}
	t.Fatal(err)
	return nil
}

// ends checks, once nothing fails any more, that the locks can be acquired.
func (w *simWorld) ends(stores []*store.Store) {
	for i, s := range stores {
		name := searched[i%len(searched)]
		l := store.Lease{Name: name, Owner: store.NewOwner(), TTL: 2 * time.Second, Kind: w.kind, Weight: w.kind.Normal().Limit}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		g, err := s.Wait(ctx, store.WaitRequest{Lease: l}, nil)
		cancel()
		if err != nil {
			w.finds("lock %s is not free in the end: %v", name, err)
			continue
		}
		if g.Token <= w.locks[name].token {
			w.finds("token %d of lock %s in the end, after %d", g.Token, name, w.locks[name].token)
		}
		w.locks[name].token = g.Token
		if err := s.Release(context.Background(), store.ReleaseRequest{Lease: l}); err != nil {
			w.finds("release in the end: %v", err)
		}
	}
}

// judged calls f while nobody is judged.
func (w *simWorld) judged(f func()) {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	f()
}

func (w *simWorld) finds(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.c.notes("WRONG: %s", text)
	w.wrong = append(w.wrong, text)
}

// granted judges a grant. It returns nil if its validity is over.
func (w *simWorld) granted(of store.Lease, g store.Grant, start time.Time) *simHold {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	h := &simHold{of: of, token: g.Token, slot: g.Slot, until: start.Add(g.Since + of.TTL)}
	lock := w.locks[of.Name]
	w.c.notes("%s has lock "+of.Name+", token %d, slot %d, until %.4f", of.Owner, g.Token, g.Slot, h.until.Sub(w.c.began).Seconds())
	if !now.Before(h.until) {
		return nil
	}
	if w.broken[of.Owner] {
		lock.token = max(lock.token, g.Token)
		return h
	}
	lock.holds = slices.DeleteFunc(lock.holds, func(o *simHold) bool { return o.gone || w.broken[o.of.Owner] || !now.Before(o.until) })
	sum := max(of.Weight, 1)
	var shares bool
	for _, o := range lock.holds {
		if o.of.Owner == of.Owner { // another attempt
			sum -= max(of.Weight, 1)
		}
		sum += max(o.of.Weight, 1)
		if o.slot == g.Slot && !w.kind.IsMutex() && o.of.Owner != of.Owner {
			w.finds("%s and %s have slot %d", o.of.Owner, of.Owner, g.Slot)
		}
		shares = shares || o.token == g.Token
	}
	if limit := w.kind.Normal().Limit; sum > max(limit, 1) {
		var all []string
		for _, o := range lock.holds {
			all = append(all, fmt.Sprintf("%s until %.4f", o.of.Owner, o.until.Sub(w.c.began).Seconds()))
		}
		w.finds("%s is granted a %v beside %v", of.Owner, w.kind, all)
	}
	later := g.Token > lock.token || shares || of.Owner == lock.last || w.kind.Shared && g.Token == lock.token
	if !later && (w.kind.IsMutex() || w.kind.Shared) {
		w.finds("%s has token %d after %d", of.Owner, g.Token, lock.token)
	}
	lock.token, lock.last = max(lock.token, g.Token), of.Owner
	lock.holds = append(lock.holds, h)
	return h
}

// simWorker uses the lock again and again.
type simWorker struct {
	w        *simWorld
	s, other *store.Store // a second attempt of an owner may go by way of the other one, which stays in use
	id       int
	n        int
	rng      *rand.Rand
}

func (k *simWorker) time(most time.Duration) time.Duration {
	return time.Duration(k.rng.Int64N(int64(most)))
}

// bounded is a context that ends soon in many cases.
func (k *simWorker) bounded() (context.Context, context.CancelFunc) {
	most := 30 * time.Second
	switch k.rng.IntN(4) {
	case 0:
		most = 10 * time.Millisecond
	case 1:
		most = 3 * time.Second
	}
	return context.WithTimeout(context.Background(), k.time(most))
}

func (k *simWorker) lease() store.Lease {
	k.n++
	l := store.Lease{Name: searched[k.rng.IntN(len(searched))], Owner: fmt.Sprintf("w%d.%d", k.id, k.n), TTL: time.Second + k.time(4*time.Second), Kind: k.w.kind}
	if k.rng.IntN(2) == 0 {
		l.Attempt = "x1"
	}
	if limit := k.w.kind.Normal().Limit; limit > 1 && k.rng.IntN(3) == 0 {
		l.Weight = limit
	}
	return l
}

func (k *simWorker) work(ctx context.Context) {
	var next *store.Lease // a place that came with a release
	for ctx.Err() == nil {
		l := k.lease()
		waits := k.rng.IntN(4) > 0
		if next != nil {
			l, waits, next = *next, true, nil
		}
		h := k.gets(l, waits)
		if l.Attempt != "" && k.rng.IntN(2) == 0 { // another attempt of the owner, whether the first one was granted or not
			first := l
			l.Attempt = "x2"
			moved := k.rng.IntN(2) == 0
			if moved {
				k.s, k.other = k.other, k.s
			}
			var undone sync.WaitGroup
			if h == nil && k.rng.IntN(2) == 0 {
				undoes, cancel := k.bounded()
				undone.Go(func() { defer cancel(); k.undo(undoes, first) })
			}
			if again := k.gets(l, waits); again != nil {
				if h != nil {
					k.w.mu.Lock()
					h.gone = true
					k.w.mu.Unlock()
				}
				h = again
			}
			undone.Wait()
			if h != nil {
				h.moved = moved
			}
		}
		if h != nil {
			next = k.holds(ctx, h)
		}
		time.Sleep(k.time(300 * time.Millisecond))
	}
	if next != nil { // the place is given up
		_ = k.s.Release(context.Background(), store.ReleaseRequest{Lease: *next})
	}
}

func (w *simWorld) count(what string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		what += "-failed"
	}
	w.tally[what]++
}

// undo takes back an attempt that was given up.
func (k *simWorker) undo(ctx context.Context, l store.Lease) {
	err := k.s.Release(ctx, store.ReleaseRequest{Lease: l, Undo: true})
	k.w.c.notes("%s %s is undone: %v", l.Owner, l.Attempt, err)
	k.w.count("undo", err)
}

// gets acquires the lock or waits for it.
func (k *simWorker) gets(l store.Lease, waits bool) *simHold {
	ctx, cancel := k.bounded()
	defer cancel()
	start := time.Now()
	var g store.Grant
	var err error
	what := "acquire"
	k.w.c.notes("%s %s begins, waits %v, weight %d, ttl %v", l.Owner, l.Attempt, waits, l.Weight, l.TTL)
	if waits {
		what = "wait"
		g, err = k.s.Wait(ctx, store.WaitRequest{Lease: l}, nil)
	} else {
		g, err = k.s.Acquire(ctx, store.AcquireRequest{Lease: l})
	}
	k.w.count(what, err)
	if err != nil {
		k.w.c.notes("%s %s: %v", l.Owner, l.Attempt, err)
		return nil
	}
	h := k.w.granted(l, g, start)
	if h == nil { // an earlier attempt of the owner may have the lock
		_ = k.s.Release(context.Background(), store.ReleaseRequest{Lease: l, Undo: l.Attempt != ""})
	}
	return h
}

// holds renews the lease for some time, and releases it.
func (k *simWorker) holds(ctx context.Context, h *simHold) (next *store.Lease) {
	l := h.of
	until := time.Now().Add(k.time(3 * l.TTL))
	if k.rng.IntN(2) == 0 {
		until = time.Now().Add(k.time(50 * time.Millisecond))
	}
	for time.Now().Before(until) {
		if k.w.kind == store.ReadWrite && l.Weight > 1 && k.rng.IntN(6) == 0 {
			k.downgrade(h, &l)
		}
		time.Sleep(min(time.Until(until), l.TTL/3))
		sent := time.Now()
		of, cancel := context.WithDeadline(context.Background(), h.until)
		err := k.s.Renew(of, []store.Lease{l})[0]
		cancel()
		k.w.count("renew", err)
		k.w.mu.Lock()
		switch valid := time.Now().Before(h.until); {
		case err == nil && valid:
			h.until = sent.Add(l.TTL)
		case err == nil:
		case errors.Is(err, store.ErrNotHeld):
			k.w.c.notes("%s is not held", l.Owner)
			if valid && !k.w.broken[l.Owner] {
				k.w.finds("%s is not held while it is valid", l.Owner)
			}
			h.gone = true
		default:
			k.w.c.notes("%s renews: %v", l.Owner, err)
		}
		k.w.mu.Unlock()
		if h.gone || !time.Now().Before(h.until) {
			break
		}
	}
	if k.rng.IntN(8) == 0 { // its process dies
		k.w.c.notes("%s dies", l.Owner)
		return nil
	}
	k.w.mu.Lock()
	h.gone = true
	k.w.mu.Unlock()
	of, cancel := k.bounded()
	defer cancel()
	k.w.c.notes("%s releases", l.Owner)
	l.Attempt = ""
	r := store.ReleaseRequest{Lease: l}
	var err error
	if k.rng.IntN(3) == 0 && ctx.Err() == nil {
		n := k.lease()
		n.Name = l.Name
		var queued bool
		queued, err = k.s.ReleaseAndRejoin(of, r, store.WaitRequest{Lease: n})
		if queued {
			next = &n
		}
	} else {
		err = k.s.Release(of, r)
	}
	k.w.c.notes("%s has released: %v", l.Owner, err)
	if err == nil && !h.moved {
		k.w.judged(func() { k.w.c.released[l.Owner] = true })
	}
	k.w.count("release", err)
	return next
}

func (k *simWorker) downgrade(h *simHold, l *store.Lease) {
	of, cancel := context.WithDeadline(context.Background(), h.until)
	defer cancel()
	k.w.mu.Lock()
	h.of.Weight = 1 // it may be a reader soon
	k.w.mu.Unlock()
	g, err := k.s.Downgrade(of, *l)
	k.w.c.notes("%s is a reader, token %d: %v", l.Owner, g.Token, err)
	k.w.count("downgrade", err)
	if err == nil {
		k.w.mu.Lock()
		defer k.w.mu.Unlock()
		l.Weight, h.token = 1, g.Token
		k.w.locks[l.Name].token = max(k.w.locks[l.Name].token, g.Token)
	}
}

// operate breaks leases now and then.
func (w *simWorld) operate(ctx context.Context, s *store.Store, rng *rand.Rand) {
	for clock.Sleep(ctx, time.Duration(rng.Int64N(int64(15*time.Second)))) {
		w.mu.Lock()
		var h *simHold
		name := searched[rng.IntN(len(searched))]
		for _, o := range w.locks[name].holds {
			if !o.gone && time.Now().Before(o.until) {
				h = o
			}
		}
		r := store.BreakRequest{Name: name, Reason: "test", Now: rng.IntN(2) == 0}
		if h != nil {
			w.broken[h.of.Owner], r.Owner, r.Token = true, h.of.Owner, h.token
		}
		w.mu.Unlock()
		if h == nil {
			continue
		}
		of, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		left, err := s.BreakLease(of, r)
		cancel()
		w.c.notes("the lease of %s is broken, now %v: %v, %v", r.Owner, r.Now, left, err)
		w.count(cmp.Or(map[bool]string{true: "break-now"}[r.Now], "break"), err)
	}
}
