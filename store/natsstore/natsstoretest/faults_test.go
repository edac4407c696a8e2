package natsstoretest

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/testenv/contest"
	"github.com/leasehold-dev/leasehold/internal/testenv/torturetest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/natsstore"
)

func lease(name string, ttl time.Duration) store.Lease {
	return store.Lease{Name: name, Owner: store.NewOwner(), TTL: ttl}
}

// While the leader of the stream is killed, stopped, and cut off from the others but not from its
// clients, no two clients hold a lock at once, tokens rise, and each client gets its turn, also
// those that were connected to that server.
func TestContest(t *testing.T) {
	t.Parallel()
	nodes := startCluster(t)
	open(t, nodes.addresses(), &natsstore.Options{Synced: true, Timeout: 30 * time.Second}) // makes the stream once there are three
	var clients []store.Engine
	for i := range 6 {
		// Each learns of the others from its server.
		clients = append(clients, open(t, nodes.addresses()[i%3:i%3+1], &natsstore.Options{Synced: true}))
	}
	const patience = 2 * time.Minute
	c := &contest.Contest{Name: "contested", TTL: 4 * time.Second}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for _, s := range clients {
		wg.Go(func() { c.Contend(ctx, t, s) })
	}
	c.GoesOn(t, "undisturbed", patience, clients...)

	i := nodes.leader()
	nodes.members[i].process.Kill()
	c.GoesOn(t, "without the leader", patience, clients...)
	nodes.start(i)
	c.GoesOn(t, "after it was started again", patience, clients...)

	i = nodes.leader()
	if err := nodes.members[i].process.Freeze(); err != nil {
		t.Fatal(err)
	}
	c.GoesOn(t, "while the leader is stopped", patience, clients...)
	if err := nodes.members[i].process.Thaw(); err != nil {
		t.Fatal(err)
	}
	c.GoesOn(t, "after it goes on", patience, clients...)

	i = nodes.leader()
	nodes.cutOff(i)
	c.GoesOn(t, "while the leader is cut off", patience, clients...)
	nodes.heal(i)
	c.GoesOn(t, "after it is reached again", patience, clients...)
	cancel()
	wg.Wait()
}

// Processes that compete for locks of all kinds, and are stopped and killed meanwhile, never hold
// one at the same time, are told of losses in time, and wait for a free lock no longer than
// docs/nats.md says. The first two hold as well while servers are killed, stopped and cut off.
func TestTorture(t *testing.T) {
	const ttl = 2 * time.Second
	t.Run("one server", func(t *testing.T) {
		t.Parallel()
		srv := start(t, server.Options{SyncAlways: true})
		torturetest.Run(t, "nats://"+srv.Addr().String()+"/torture?sync=always", ttl, 4*time.Second, nil)
	})
	t.Run("killed server", func(t *testing.T) {
		t.Parallel()
		one := startServers(t, 1)
		torturetest.Run(t, "nats://"+one.members[0].address+"?sync=always", ttl, 0, func(ctx context.Context) {
			for ctx.Err() == nil {
				clock.Sleep(ctx, 2*time.Second)
				one.members[0].process.Kill()
				clock.Sleep(ctx, time.Second)
				one.start(0)
			}
		})
	})
	t.Run("three servers", func(t *testing.T) {
		t.Parallel()
		nodes := startCluster(t)
		open(t, nodes.addresses(), &natsstore.Options{Synced: true, Timeout: 30 * time.Second})
		torturetest.Run(t, "nats://"+strings.Join(nodes.addresses(), ",")+"?sync=always&timeout=10s", ttl, 0, nodes.disturb)
	})
}

// disturb kills, stops and cuts off one server after the other, the leader more often than others.
func (c *cluster) disturb(ctx context.Context) {
	rest := func(d time.Duration) { clock.Sleep(ctx, d) }
	for n := 0; ctx.Err() == nil; n++ {
		rest(2 * time.Second)
		i := n % 3
		if n%2 == 0 {
			i = c.leader()
		}
		switch p := c.members[i].process; n % 3 {
		case 0:
			p.Kill()
			rest(3 * time.Second)
			c.start(i)
		case 1:
			c.cutOff(i)
			rest(5 * time.Second)
			c.heal(i)
		case 2:
			if err := p.Freeze(); err != nil {
				c.t.Error(err)
			}
			rest(4 * time.Second)
			if err := p.Thaw(); err != nil {
				c.t.Error(err)
			}
		}
		rest(3 * time.Second)
	}
}
