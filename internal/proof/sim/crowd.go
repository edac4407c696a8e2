package sim

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/clock"
)

// newCrowd returns the crowd of a client.
func newCrowd(c *client) (all []*worker) {
	for i := range c.w.script.Crowd {
		k := newWorker(c, maxWorkers-1)
		k.index, k.crowd = c.w.script.Workers+1+i, i+1
		k.rng = rand.New(rand.NewPCG(c.w.script.Seed, uint64(i)<<32))
		all = append(all, k)
	}
	return all
}

// inCrowd has the worker act with its crowd. One after the other asks for the first lock, a
// millisecond apart. All readers hold it together. At one instant everybody releases the lock, or
// no longer waits for it.
func (k *worker) inCrowd() {
	ttl := k.w.script.longest()
	o := leasehold.LockOptions{Require: k.requires(), TTL: ttl, Purpose: "crowd"}
	for begin := prologue + ttl/2; begin < prologue+k.w.script.span() && k.c.ctx.Err() == nil; begin += 3 * ttl {
		k.does("thinks")
		arrives := begin + time.Duration(k.crowd)*time.Millisecond + time.Duration(k.lane)
		if clock.Sleep(k.c.ctx, arrives-k.w.timerNow()); k.c.ctx.Err() != nil {
			return
		}
		ctx, stop := context.WithTimeout(k.c.ctx, begin+2*ttl+time.Duration(k.lane)-k.w.timerNow())
		l := k.one(0).With(o)
		k.does("waits in a crowd")
		k.begins(0, o)
		lease, err := l.Acquire(ctx)
		if err != nil {
			k.note(note{kind: refused, err: err})
			stop()
			continue
		}
		c := k.grant(lease, o)
		if c.kind().Shared {
			k.hold(c, ctx, 2*ttl)
		} else {
			k.hold(c, ctx, k.upTo(ttl/4))
		}
		k.release(c, k.c.ctx)
		stop()
	}
}
