package locks

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold-dev/leasehold/bench/floor"
	"github.com/leasehold-dev/leasehold/internal/lab/load"
)

var zookeeperLock = Kind{
	Name: "zookeeper", Label: "go-zookeeper Lock, 1 server", Role: Peer, Engine: ZooKeeper, Nodes: 1, Module: "github.com/go-zookeeper/zk",
	Open: func(ctx context.Context, addrs []string) (Client, error) {
		c, events, err := zk.Connect(addrs, TTL, zk.WithLogger(silent{}))
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		for {
			select {
			case e := <-events:
				if e.State == zk.StateHasSession {
					go func() {
						for range events { // nobody else reads them
						}
					}()
					pair := func(name string) load.Pair {
						return zookeeperPair{zk.NewLock(c, "/"+name, zk.WorldACL(zk.PermAll))}
					}
					return client{pair, c.Close}, nil
				}
			case <-ctx.Done():
				c.Close()
				return nil, errors.Join(errors.New("no session with ZooKeeper"), ctx.Err())
			}
		}
	},
}

type silent struct{}

func (silent) Printf(string, ...any) {}

type zookeeperPair struct{ l *zk.Lock }

func (p zookeeperPair) Lock(context.Context) error   { return p.l.Lock() }
func (p zookeeperPair) Unlock(context.Context) error { return p.l.Unlock() }

// zookeeperFloor is Leasehold's requests by hand.
var zookeeperFloor = Kind{
	Name: "floor-zookeeper", Label: "by hand, ZooKeeper, 1 server", Role: Floor, Engine: ZooKeeper, Nodes: 1,
	Open: func(ctx context.Context, addrs []string) (Client, error) {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		return floor.OpenZooKeeper(ctx, addrs[0], TTL)
	},
}
