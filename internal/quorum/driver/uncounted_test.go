package driver

import (
	"log/slog"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// jumped renews two leases at three nodes, of which the second does not answer and the clock of
// the third has jumped ahead: an old lease that was granted before the jump, and a new one,
// granted or healed after it. The client sees the jump before it has the node healed, or only with
// the next renewal, since a node that lacks a lease does not tell the time. It returns the results while the third node is discounted, and
// that of the new lease afterwards.
func jumped(t *testing.T, healed, seen bool) (old, renewed, later error) {
	const hold = time.Minute
	now := clock.Instant(time.Hour)
	k := &Driver[[]Question]{
		Encode:      func(q Question, _ []Question) []Question { return []Question{q} },
		NodeTimeout: func(time.Duration) time.Duration { return time.Hour },
		Clock:       clock.Func(func() clock.Instant { return now }),
		Logger:      slog.New(slog.DiscardHandler),
		Clocks:      NewClocks(3, func(clock.Instant) time.Duration { return hold }, nil, slog.New(slog.DiscardHandler)),
	}
	var nodes []*oracle
	for i := range 3 {
		o := &oracle{index: i, says: map[string]Reply{}}
		nodes, k.Nodes = append(nodes, o), append(k.Nodes, o)
	}
	ahead := time.Duration(0)
	say := func(name string, kinds ...quorum.Kind) {
		for i, kind := range kinds {
			at := now
			if i == 2 {
				at = at.Add(ahead)
			}
			o := nodes[i]
			o.open.Wait()
			if kind == quorum.Absent && !seen {
				at = 0
			}
			o.says[name] = Reply{Kind: kind, Token: 1, Clock: at, Report: store.NodeOutcome{Outcome: store.Granted}}
		}
	}
	lease := func(name string) store.Lease { return store.Lease{Name: name, Owner: "o", TTL: 10 * time.Second} }
	acquire := func(name string) {
		if _, err := k.Acquire(t.Context(), store.AcquireRequest{Lease: lease(name)}); err != nil {
			t.Fatalf("acquire %q: %v", name, err)
		}
	}
	renew := func(name string) error { return k.Renew(t.Context(), []store.Lease{lease(name)})[0] }

	say("old", quorum.Yes, quorum.Yes, quorum.Yes)
	acquire("old")
	now, ahead = now.Add(time.Second), 10*time.Second
	if healed {
		say("new", quorum.Yes, quorum.Yes, quorum.Absent)
		acquire("new")
		if err := renew("new"); err != nil {
			t.Fatal(err)
		}
	} else {
		say("new", quorum.Yes, quorum.Yes, quorum.Yes)
		acquire("new")
	}
	now = now.Add(time.Second)
	for _, name := range []string{"old", "new"} {
		say(name, quorum.Yes, quorum.Unknown, quorum.Yes)
	}
	old, renewed = renew("old"), renew("new")
	now = now.Add(2 * hold)
	say("new", quorum.Yes, quorum.Unknown, quorum.Yes)
	return old, renewed, renew("new")
}

// A node whose clock has jumped may have dropped the lease of an owner that counts on it. A
// later holder that the node granted the lock, or healed, then does not count it either,
// until all leases from before the jump are over.
func TestRenewalsAfterAJump(t *testing.T) {
	for _, c := range []struct{ healed, seen bool }{{false, true}, {true, true}, {true, false}} {
		old, renewed, later := jumped(t, c.healed, c.seen)
		if old != nil || later != nil {
			t.Errorf("%+v: a lease from before the jump: %v, one when the node takes part again: %v, want both renewed", c, old, later)
		}
		if renewed == nil {
			t.Errorf("%+v: a lease that the node got after the jump was renewed by it", c)
		}
	}
}
