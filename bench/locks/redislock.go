package locks

import (
	"context"

	rl "github.com/bsm/redislock"

	"github.com/leasehold-dev/leasehold/internal/lab/load"
)

var redislock = Kind{
	Name: "redislock", Label: "bsm/redislock, 1 node", Role: Peer, Engine: Redis, Nodes: 1, Module: "github.com/bsm/redislock",
	Open: func(ctx context.Context, addrs []string) (Client, error) {
		c, err := dialGoredis(ctx, addrs[0])
		if err != nil {
			return nil, err
		}
		locker := rl.New(c)
		return client{func(name string) load.Pair { return &redislockPair{locker: locker, name: name} }, func() { c.Close() }}, nil
	},
}

type redislockPair struct {
	locker *rl.Client
	name   string
	lock   *rl.Lock
}

func (p *redislockPair) Lock(ctx context.Context) (err error) {
	p.lock, err = p.locker.Obtain(ctx, p.name, TTL, nil)
	return err
}

func (p *redislockPair) Unlock(ctx context.Context) error { return p.lock.Release(ctx) }
