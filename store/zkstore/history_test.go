package zkstore

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/validity"
	"github.com/leasehold-dev/leasehold/store"
)

// stay is what a holder believed: that it had a part of a lock from when to when.
type stay struct {
	From, To     clock.Instant
	Weight, Slot int64
	Token        fence.Token
}

// history has the stays in one lock of one kind.
type history struct {
	kind store.Kind
	mu   sync.Mutex
	all  []stay
}

func (h *history) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.all)
}

// add adds a stay, and fails the test if it cannot have been beside or after the others:
// there were too many holders, two had one slot, readers had two tokens, or a token was
// not larger than an earlier one.
func (h *history) add(t *testing.T, n stay) {
	t.Helper()
	if n.From >= n.To {
		return // it was granted too late to be of use
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, n)
	limit, reads := h.kind.Normal().Limit, h.kind.Shared
	for _, o := range h.all[:len(h.all)-1] {
		beside := n.From < o.To && o.From < n.To
		alone := n.Weight == limit || o.Weight == limit
		rising := n.From < o.From == (n.Token < o.Token) && n.Token != o.Token
		switch {
		case beside && alone:
			t.Errorf("%v: a holder of the whole lock overlaps another holder: %+v and %+v", h.kind, o, n)
		case beside && o.Slot == n.Slot:
			t.Errorf("%v: two holders of slot %d: %+v and %+v", h.kind, n.Slot, o, n)
		case beside && reads && o.Token != n.Token:
			t.Errorf("%v: two readers with different tokens: %+v and %+v", h.kind, o, n)
		case (alone || !reads && o.Slot == n.Slot) && !rising:
			t.Errorf("%v: the tokens are not in order: %+v and %+v", h.kind, o, n)
		}
		if !beside {
			continue
		}
		// The largest weight at any time is reached when a holder comes.
		for _, at := range []clock.Instant{n.From, o.From} {
			sum := int64(0)
			for _, p := range h.all {
				if p.From <= at && at < p.To {
					sum += min(p.Weight, limit)
				}
			}
			if sum > limit {
				t.Errorf("%v: holders of weight %d at once, want at most %d", h.kind, sum, limit)
			}
		}
	}
}

// roam holds a part of a lock again and again for a moment until ctx ends, renews it at
// times, and reports each stay. Writers become readers at times.
func roam(ctx context.Context, s *engine, name string, kind store.Kind, ttl time.Duration, report func(stay), failed func(error)) {
	now := clock.System().Now
	limit := kind.Normal().Limit
	for ctx.Err() == nil {
		l := request(name, ttl)
		l.Kind, l.Weight = kind, 1
		switch n := rand.N(4); {
		case n == 0:
			l.Weight = limit
		case n == 1 && !kind.Shared:
			l.Weight = 1 + rand.N(limit)
		}
		start := now()
		g, err := s.Wait(ctx, store.WaitRequest{Lease: l}, nil)
		if err != nil {
			if ctx.Err() == nil {
				failed(err)
			}
			continue
		}
		got := stay{From: now(), To: validity.Until(start.Add(g.Since), ttl), Weight: l.Weight, Slot: g.Slot, Token: g.Token}
		step := func(do func(ctx context.Context) error) {
			time.Sleep(rand.N(20 * time.Millisecond))
			sent := now()
			limited, cancel := context.WithTimeout(ctx, validity.RenewAfter(ttl))
			err := do(limited)
			cancel()
			if err == nil && sent < got.To {
				got.To = max(got.To, validity.Until(sent, ttl))
			}
		}
		leave := func() { // it stops before it releases
			got.To = min(got.To, now())
			report(got)
		}
		for range rand.N(3) {
			step(func(ctx context.Context) error { return s.Renew(ctx, []store.Lease{l})[0] })
		}
		if kind.Shared && l.Weight == limit && rand.N(2) == 0 {
			until := got.To
			leave()
			step(func(ctx context.Context) error {
				g, err := s.Downgrade(ctx, l)
				if err == nil {
					l.Weight = 1
					got = stay{From: now(), To: until, Weight: 1, Slot: g.Slot, Token: g.Token}
				}
				return err
			})
			if l.Weight > 1 { // the downgrade failed: whether it has happened is unknown
				got.From = got.To
			}
		}
		leave()
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), ttl)
		_ = s.Release(limited, store.ReleaseRequest{Lease: l})
		cancel()
	}
}

// Readers, writers and holders of permits come and go in many sessions. There are never too
// many at once, no two share a slot, readers share a token, and tokens are in order.
func TestKindsUnderContention(t *testing.T) {
	t.Parallel() // it mostly waits
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	var all []*history
	var stores []*engine
	for range 4 {
		stores = append(stores, mustOpen(t, &Options{servers: []string{shared.Addr}}))
	}
	for _, kind := range []store.Kind{store.ReadWrite, store.Semaphore(4), {Limit: 3, Shared: true}} {
		h := &history{kind: kind}
		all = append(all, h)
		for _, s := range stores {
			for range 2 {
				wg.Go(func() {
					roam(ctx, s, "contended by all "+kind.String(), kind, 10*time.Second, func(n stay) { h.add(t, n) }, func(err error) { t.Error(err) })
				})
			}
		}
	}
	for _, h := range all {
		eventually.True(t, "there were stays in a "+h.kind.String(), func() bool { return h.count() > 40 })
	}
	cancel()
	wg.Wait()
}
