// Package leasehold gives distributed locks that stay correct when machines,
// networks and clocks fail.
//
//	st, err := redisstore.Open(ctx, "redis://10.0.0.1,10.0.0.2,10.0.0.3", nil)
//	if err != nil {
//		return err
//	}
//	defer st.Close()
//	c := leasehold.New(st, nil)
//	err = c.Mutex("invoices/42").Do(ctx, func(ctx context.Context, l *leasehold.Lease) error {
//		return charge(ctx, l.Token()) // ctx ends before anyone else can hold the lock
//	})
//
// [Client.Mutex], [Client.RW] and [Client.Semaphore] make locks of the three kinds. A
// [Lock] is a recipe; locking it gives a [Lease], which is one grant to one
// owner for a bounded time. The client renews the lease while it is held. If
// renewal fails for so long that the lease is about to end, its context ends with
// cause [ErrLost]. That happens LockOptions.Notice before another client can be
// granted the lock.
//
// [Client.All] acquires several locks together. [Client.Election] chooses a leader, and
// [Client.Once] runs scheduled jobs once per tick.
//
// Validity is counted from before the request was sent, on a clock that a step of
// the wall clock does not change. On Linux that clock also counts while the machine
// is suspended. No lock can stop a holder that does not check its lease: a paused
// process may write after its lease is over. The protected resource can refuse that
// write by the lease's fencing token: see [Lease.Token] and package fence.
//
// A store keeps the locks. It is a package of its own:
//
//   - store/memstore: the memory of one process
//   - store/filestore: a folder of one machine
//   - store/redisstore: one Redis server, or a majority of independent ones
//   - store/sqlstore: a PostgreSQL, MySQL or MariaDB database
//   - store/etcdstore: an etcd cluster
//   - store/zkstore: a ZooKeeper ensemble
//   - store/natsstore: NATS JetStream
//   - store/s3store: a bucket of S3
//   - store/gcsstore: a bucket of Google Cloud Storage
//   - store/azblobstore: a container of Azure Blob Storage
//   - store/kubernetesstore: the Lease objects of Kubernetes
//
// Package store/recordstore makes a store of any other engine that has compare-and-set.
// [store.Open] opens stores by URL. Those for files, etcd, ZooKeeper, NATS, S3, Cloud Storage,
// Azure and Kubernetes are modules of their own.
//
// [Client.Operator] is for people who look after locks: it shows them without taking them, and
// breaks the leases of holders that hang.
//
// # Functions that you supply
//
// Options and LockOptions take functions: Observer, OnWait, RetryDelay, a Clock and
// a log handler. They may use the Client, except for the Clock. A function that
// panics or calls runtime.Goexit leaves nothing behind: no place in a queue and no
// held lock. On your own goroutine the panic goes up to you. On a goroutine of the
// package it is recovered and logged, with its stack.
//
// All methods that take a context panic if it is nil.
package leasehold
