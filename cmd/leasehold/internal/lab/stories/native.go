package stories

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/leasehold-dev/leasehold/store"
)

// native waits for the lock with the client that comes with the engine, and keeps it.
func (p *player) native(o order) error {
	_, rest, _ := strings.Cut(o.Store, "://")
	rest, _, _ = strings.Cut(rest, "?")
	addr, path, _ := strings.Cut(rest, "/")
	if store.Scheme(o.Store) == "zookeeper" {
		conn, _, err := zk.Connect([]string{addr}, o.TTL, zk.WithLogger(silent{}))
		if err != nil {
			return err
		}
		p.end = conn.Close
		return zk.NewLock(conn, "/"+path+"/"+o.Lock, zk.WorldACL(zk.PermAll)).Lock()
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, DialTimeout: o.TTL, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	p.end = func() { client.Close() }
	session, err := concurrency.NewSession(client, concurrency.WithTTL(int(o.TTL/time.Second)))
	if err != nil {
		return fmt.Errorf("session: %w", err)
	}
	return concurrency.NewMutex(session, path+"/"+o.Lock).Lock(p.ctx)
}

// silent is a logger.
type silent struct{}

func (silent) Printf(string, ...any) {}
