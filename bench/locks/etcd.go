package locks

import (
	"context"
	"time"

	etcd "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/leasehold-dev/leasehold/internal/lab/load"
)

// etcdMutex has one session for all locks, as its documentation recommends.
var etcdMutex = Kind{
	Name: "etcd", Label: "etcd concurrency.Mutex, 1 server", Role: Peer, Engine: Etcd, Nodes: 1, Module: "go.etcd.io/etcd/client/v3",
	Open: func(ctx context.Context, addrs []string) (Client, error) {
		c, err := etcd.New(etcd.Config{Endpoints: addrs, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
		if err != nil {
			return nil, err
		}
		session, err := concurrency.NewSession(c, concurrency.WithTTL(int(TTL.Seconds())))
		if err != nil {
			c.Close()
			return nil, err
		}
		pair := func(name string) load.Pair { return etcdPair{concurrency.NewMutex(session, "/"+name)} }
		return client{pair, func() {
			session.Close()
			c.Close()
		}}, nil
	},
}

type etcdPair struct{ m *concurrency.Mutex }

func (p etcdPair) Lock(ctx context.Context) error   { return p.m.Lock(ctx) }
func (p etcdPair) Unlock(ctx context.Context) error { return p.m.Unlock(ctx) }
