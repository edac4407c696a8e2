package locks

import (
	"context"

	lh "github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/lab/load"
	"github.com/leasehold-dev/leasehold/store"
	_ "github.com/leasehold-dev/leasehold/store/etcdstore" // the scheme etcd
	_ "github.com/leasehold-dev/leasehold/store/zkstore"   // the scheme zookeeper
)

// inEngine is Leasehold in one server of an engine other than Redis, opened by its URL.
type inEngine struct {
	Kind
	url     func(addr string) string
	require store.Class
}

func (e inEngine) options() lh.LockOptions { return lh.LockOptions{TTL: TTL, Require: e.require} }

// alone is for locks that nobody else wants.
func (e inEngine) alone() Kind {
	return e.with(func(st *store.Store, locks *lh.Client) Client {
		pair := func(name string) load.Pair { return load.OfLock(locks.Mutex(name).With(e.options())) }
		return client{pair, func() { st.Close() }}
	})
}

// waiting waits for its turn.
func (e inEngine) waiting() Kind {
	return e.with(func(st *store.Store, locks *lh.Client) Client { return waitingClient(st, locks, e.options()) })
}

func (e inEngine) with(of func(*store.Store, *lh.Client) Client) Kind {
	k := e.Kind
	k.Role, k.Nodes = Ours, 1
	k.Open = func(ctx context.Context, addrs []string) (Client, error) {
		st, err := store.Open(ctx, e.url(addrs[0]), nil)
		if err != nil {
			return nil, err
		}
		return of(st, lh.New(st, nil)), nil
	}
	return k
}

var inEtcd = inEngine{
	Kind: Kind{Name: "leasehold-etcd", Label: "Leasehold, etcd, 1 server", Engine: Etcd},
	url:  func(addr string) string { return "etcd://" + addr },
}

var inZooKeeper = inEngine{
	Kind: Kind{Name: "leasehold-zookeeper", Label: "Leasehold, ZooKeeper, 1 server", Engine: ZooKeeper},
	url:  func(addr string) string { return "zookeeper://" + addr },
}
