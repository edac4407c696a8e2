package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// fault is a kind of fault. do causes it, for as long as wait blocks, and then
// undoes it.
type fault struct {
	name string
	do   func(n *Node, rng *rand.Rand, d time.Duration, wait func())
}

// faults are all kinds of faults. Each leaves the node as it found it.
var faults = []fault{
	{"server frozen", func(n *Node, _ *rand.Rand, _ time.Duration, wait func()) {
		n.Server.Freeze() // what goes wrong here fails the test by itself
		wait()
		n.Server.Thaw()
	}},
	{"server killed, and started again", func(n *Node, _ *rand.Rand, _ time.Duration, wait func()) {
		n.Server.Kill()
		wait()
		n.Server.Restart()
	}},
	{"connections cut, and refused", func(n *Node, _ *rand.Rand, _ time.Duration, wait func()) {
		n.Proxy.RefuseNew()
		n.Proxy.Cut()
		wait()
		n.Proxy.Pass()
	}},
	{"delayed", func(n *Node, rng *rand.Rand, d time.Duration, wait func()) {
		n.Proxy.Delay(time.Duration(rng.Int64N(int64(d/4) + 1)))
		wait()
		n.Proxy.Pass()
	}},
	{"black hole", func(n *Node, _ *rand.Rand, _ time.Duration, wait func()) {
		n.Proxy.Blackhole()
		wait()
		n.Proxy.Pass()
	}},
	{"replies swallowed", func(n *Node, _ *rand.Rand, _ time.Duration, wait func()) {
		n.Proxy.DropReplies()
		wait()
		n.Proxy.Pass()
	}},
	{"requests held, and delivered late", func(n *Node, _ *rand.Rand, _ time.Duration, wait func()) {
		n.Proxy.HoldRequests()
		wait()
		n.Proxy.Pass()
	}},
	{"everything held, and delivered late", func(n *Node, _ *rand.Rand, _ time.Duration, wait func()) {
		n.Proxy.HoldAll()
		wait()
		n.Proxy.Pass()
	}},
	{"subscribers cut off, again and again", func(n *Node, _ *rand.Rand, d time.Duration, wait func()) {
		ctx, stop := context.WithCancel(context.Background())
		var cutting sync.WaitGroup
		cutting.Go(func() {
			for clock.Sleep(ctx, d/8) {
				n.Server.Do(ctx, "CLIENT", "KILL", "TYPE", "pubsub") // or it is over
			}
		})
		wait()
		stop()
		cutting.Wait()
	}},
	{"cut in the middle of replies", func(n *Node, rng *rand.Rand, _ time.Duration, wait func()) {
		n.Proxy.CutReplyAfter(rng.IntN(12))
		wait()
		n.Proxy.Pass()
	}},
}

// Disturb makes faults until ctx ends, and returns when all are taken back.
// Each node has its own, at times that know nothing of the others'; now and
// then, in a storm, most or all nodes have one together. Faults last up to two
// TTLs, so leases are kept through some and lost in others. Note is called when
// one begins, and what it returns when it is over.
func (c *Cluster) Disturb(ctx context.Context, seed uint64, ttl time.Duration, note func(on, what string) (over func())) {
	var all sync.WaitGroup
	for i, n := range c.Nodes {
		rng := rand.New(rand.NewPCG(seed, uint64(i)+1))
		all.Go(func() {
			for clock.Sleep(ctx, draw(rng, ttl/2, 6*ttl)) {
				n.suffer(ctx, rng, draw(rng, ttl/20, 2*ttl), note)
			}
		})
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	for clock.Sleep(ctx, draw(rng, 2*ttl, 12*ttl)) {
		d := draw(rng, ttl/20, 2*ttl)
		var storm sync.WaitGroup
		for i := range len(c.Nodes)/2 + 1 + rng.IntN((len(c.Nodes)+1)/2) {
			own := rand.New(rand.NewPCG(seed, rng.Uint64()))
			storm.Go(func() { c.Nodes[i].suffer(ctx, own, d, note) })
		}
		storm.Wait()
	}
	all.Wait()
}

// suffer causes one fault, unless the node already has one.
func (n *Node) suffer(ctx context.Context, rng *rand.Rand, d time.Duration, note func(on, what string) (over func())) {
	if !n.busy.TryLock() {
		return
	}
	defer n.busy.Unlock()
	f := faults[rng.IntN(len(faults))]
	over := note(fmt.Sprintf("node %s", n.Server.Addr()), f.name)
	f.do(n, rng, d, func() { clock.Sleep(ctx, d) })
	over()
}

// draw returns a random duration.
func draw(rng *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(rng.Int64N(int64(most-least)))
}

// Blink takes one server after the other away for a moment, once a second, until ctx
// ends: its connections are cut, and new ones refused. Two are never away at once.
func (c *Cluster) Blink(ctx context.Context, note func(on, what string) (over func())) {
	for i := 0; clock.Sleep(ctx, 850*time.Millisecond); i++ {
		n := c.Nodes[i%len(c.Nodes)]
		over := note(fmt.Sprintf("node %s", n.Server.Addr()), "away for a moment")
		n.Proxy.RefuseNew()
		n.Proxy.Cut()
		clock.Sleep(ctx, 150*time.Millisecond)
		n.Proxy.Pass()
		over()
	}
}
