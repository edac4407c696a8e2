package stories

import (
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/leasehold-dev/leasehold/internal/testenv/etcdtest"
	"github.com/leasehold-dev/leasehold/internal/testenv/zktest"
	_ "github.com/leasehold-dev/leasehold/store/etcdstore" // for store.Open
	_ "github.com/leasehold-dev/leasehold/store/zkstore"
)

// zookeeper starts a real ZooKeeper, and returns the URL of locks in it.
func (s *stage) zookeeper() string {
	server, err := zktest.Launch(zktest.Options{Tick: s.ttl / 5, Settings: []string{"maxSessionTimeout=120000"}})
	s.checkInstalled(err, zktest.ErrNotInstalled)
	s.atEnd(server.Close)
	return "zookeeper://" + server.Addr + "/leasehold"
}

// etcd starts a real etcd, and returns a client of it and the URL of locks in it.
func (s *stage) etcd() (client *clientv3.Client, url string) {
	program := s.config.etcd
	if program == "" {
		var err error
		program, err = etcdtest.Installed()
		s.checkInstalled(err, etcdtest.ErrNotInstalled)
	}
	c, err := etcdtest.Launch(etcdtest.Options{Program: program})
	s.check(err)
	s.atEnd(c.Close)
	client, err = clientv3.New(clientv3.Config{Endpoints: c.Endpoints(), DialTimeout: 10 * time.Second, Logger: zap.NewNop()})
	s.check(err)
	s.atEnd(func() { client.Close() })
	return client, "etcd://" + c.Endpoints()[0] + "/leasehold?max_ttl=" + (2 * long).String()
}
