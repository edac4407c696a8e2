// Package contest has clients contend for one lock. It checks that no two of them count on the
// lock at once, and that tokens rise.
package contest

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/validity"
	"github.com/leasehold-dev/leasehold/store"
)

// Contest records the turns of the holders of one lock. It is safe for concurrent use.
type Contest struct {
	Name string
	TTL  time.Duration

	mu    sync.Mutex
	turns []turn
}

// turn is a time in which a client counted on holding the lock.
type turn struct {
	by       store.Engine
	from, to clock.Instant
	token    fence.Token
}

// add adds a turn. It fails the test if the turn overlaps with another one, or if the later one
// of two does not have the larger token.
func (c *Contest) add(t *testing.T, n turn) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.turns {
		if n.from < o.to && o.from < n.to {
			t.Errorf("two holders at once: one with token %v for %v, the other with token %v for %v", o.token, o.to.Sub(o.from), n.token, n.to.Sub(n.from))
		}
		if (n.from < o.from) != (n.token < o.token) || n.token == o.token {
			t.Errorf("token %v was granted %v after token %v, want a larger one", n.token, n.from.Sub(o.from), o.token)
		}
	}
	c.turns = append(c.turns, n)
}

// Contend acquires the lock again and again until ctx ends, and holds it for a moment,
// renewing it at times. A wait must not fail.
func (c *Contest) Contend(ctx context.Context, t *testing.T, s store.Engine) {
	for ctx.Err() == nil {
		l := store.Lease{Name: c.Name, Owner: store.NewOwnerAt(time.Now()), TTL: c.TTL}
		start := clock.System().Now()
		g, err := s.Wait(ctx, store.WaitRequest{Lease: l}, nil)
		if err != nil {
			if ctx.Err() == nil {
				t.Errorf("wait: %v", err)
			}
			continue
		}
		c.hold(ctx, t, s, l, start, g)
	}
}

// Try asks for the lock once, without waiting, and holds it for a moment if it is granted. It may
// be busy, and servers may fail.
func (c *Contest) Try(ctx context.Context, t *testing.T, s store.Engine) {
	l := store.Lease{Name: c.Name, Owner: store.NewOwner(), TTL: c.TTL}
	start := clock.System().Now()
	switch g, err := s.Acquire(ctx, store.AcquireRequest{Lease: l}); {
	case err == nil:
		c.hold(ctx, t, s, l, start, g)
	case ctx.Err() == nil && !errors.Is(err, store.ErrBusy) && !errors.Is(err, store.ErrQuorum):
		t.Errorf("acquire: %v", err)
	}
}

// hold holds the lock that was granted for a moment, and releases it. start is when it was asked
// for.
func (c *Contest) hold(ctx context.Context, t *testing.T, s store.Engine, l store.Lease, start clock.Instant, g store.Grant) {
	if g.Lease.Owner != "" { // a Wait over several nodes may have replaced the owner
		l = g.Lease
	}
	now := clock.System().Now
	got := turn{by: s, from: now(), to: validity.Until(start.Add(g.Since), c.TTL), token: g.Token}
	for range rand.IntN(4) {
		time.Sleep(rand.N(20 * time.Millisecond))
		sent := now()
		limited, cancel := context.WithTimeout(ctx, validity.RenewAfter(c.TTL))
		err := s.Renew(limited, []store.Lease{l})[0]
		cancel()
		if err == nil && sent < got.to {
			got.to = max(got.to, validity.Until(sent, c.TTL))
		}
	}
	got.to = min(got.to, now()) // the holder stops before it releases
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.TTL)
	_ = s.Release(limited, store.ReleaseRequest{Lease: l}) // or the lease expires
	cancel()
	if got.from < got.to {
		c.add(t, got)
	}
}

// enough is how many turns the clients have in GoesOn, each of them on average.
const enough = 4

// starved is how many turns each client could have had when one that had none is starved. Time
// alone does not tell: a turn takes milliseconds on one server, and seconds on another one.
const starved = 20

// GoesOn waits until each of the clients has had a turn that began since, and all together have had
// some for each. It fails the test if nobody has a turn for longer than patience, or if one client
// has none for as long while the others have many.
func (c *Contest) GoesOn(t *testing.T, what string, patience time.Duration, clients ...store.Engine) {
	t.Helper()
	AllGoOn(t, what, patience, []*Contest{c}, clients...)
}

// AllGoOn is GoesOn for several contests, which are waited for at once.
func AllGoOn(t *testing.T, what string, patience time.Duration, contests []*Contest, clients ...store.Engine) {
	t.Helper()
	start := time.Now()
	since := clock.System().Now()
	for _, c := range contests {
		turns, latest := 0, start
		for {
			now, without := c.since(since, clients)
			if now > turns {
				turns, latest = now, time.Now()
			}
			if without < 0 && turns >= enough*len(clients) {
				break
			}
			switch {
			case time.Since(latest) > patience:
				t.Fatalf("%s: nobody has had a turn with %s for %v, after %d of them", what, c.Name, patience, turns)
			case without >= 0 && time.Since(start) > patience && turns >= starved*len(clients):
				t.Fatalf("%s: client %d has had none of %d turns with %s for %v", what, without, turns, c.Name, time.Since(start).Round(time.Second))
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	t.Logf("%s: %v", what, time.Since(start).Round(time.Millisecond))
}

// since returns how many turns have begun after an instant, and the index of a client that has had
// none of them, or -1 if there is none.
func (c *Contest) since(start clock.Instant, clients []store.Engine) (turns, without int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	had := make(map[store.Engine]bool)
	for _, n := range c.turns {
		if n.from >= start {
			had[n.by] = true
			turns++
		}
	}
	return turns, slices.IndexFunc(clients, func(s store.Engine) bool { return !had[s] })
}
