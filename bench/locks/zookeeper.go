package locks

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold-dev/leasehold/bench/floor"
	"github.com/leasehold-dev/leasehold/internal/lab/load"
)

var zookeeperLock = Kind{
	Name: "zookeeper", Label: "go-zookeeper Lock, 1 server", Role: Peer, Engine: ZooKeeper, Nodes: 1, Module: "github.com/go-zookeeper/zk",
	Open: func(ctx context.Context, addrs []string) (Client, error) {
		c, err := floor.ConnectZooKeeper(ctx, addrs[0], TTL)
		if err != nil {
			return nil, err
		}
		pair := func(name string) load.Pair {
			return zookeeperPair{zk.NewLock(c, "/"+name, zk.WorldACL(zk.PermAll))}
		}
		return client{pair, c.Close}, nil
	},
}

type zookeeperPair struct{ l *zk.Lock }

func (p zookeeperPair) Lock(context.Context) error   { return p.l.Lock() }
func (p zookeeperPair) Unlock(context.Context) error { return p.l.Unlock() }

// zookeeperFloor is Leasehold's requests by hand.
var zookeeperFloor = Kind{
	Name: "floor-zookeeper", Label: "by hand, ZooKeeper, 1 server", Role: Floor, Engine: ZooKeeper, Nodes: 1,
	Open: func(ctx context.Context, addrs []string) (Client, error) {
		return floor.OpenZooKeeper(ctx, addrs[0], TTL)
	},
}
