package locks

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/rueidis"
	rl "github.com/redis/rueidis/rueidislock"

	"github.com/leasehold-dev/leasehold/internal/lab/load"
)

// rueidislockOf takes a majority of keys, 1 of 1 or 2 of 3, all on one server. With
// noLoop, clients are not notified of their own changes.
func rueidislockOf(majority int32, noLoop bool) Kind {
	k := Kind{
		Name:  fmt.Sprintf("rueidislock-%d", 2*majority-1),
		Label: map[int32]string{1: "rueidislock, 1 key", 2: "rueidislock, 2 of 3 keys"}[majority],
		Role:  Peer, Engine: Redis, Nodes: 1, Module: "github.com/redis/rueidis",
	}
	if noLoop {
		k.Name, k.Label = k.Name+"-noloop", k.Label+", no loop tracking"
	}
	k.Label += ", 1 node"
	k.Open = func(_ context.Context, addrs []string) (Client, error) {
		l, err := rl.NewLocker(rl.LockerOption{
			ClientOption:   rueidis.ClientOption{InitAddress: addrs[:1], ForceSingleClient: true},
			KeyMajority:    majority,
			NoLoopTracking: noLoop,
			KeyValidity:    TTL,
			// With the default of 20 ms, requests fail on a busy machine, and the
			// caller then waits for a message that never comes.
			TryNextAfter: time.Second,
		})
		if err != nil {
			return nil, err
		}
		return client{func(name string) load.Pair { return &rueidislockPair{locker: l, name: name} }, l.Close}, nil
	}
	return k
}

type rueidislockPair struct {
	locker rl.Locker
	name   string
	cancel context.CancelFunc
}

func (p *rueidislockPair) Lock(ctx context.Context) (err error) {
	_, p.cancel, err = p.locker.WithContext(ctx, p.name)
	return err
}

// Unlock returns when the keys are deleted, or the attempts to do so are over.
func (p *rueidislockPair) Unlock(context.Context) error {
	p.cancel()
	return nil
}
