// Package leasehold gives distributed locks that stay correct when machines,
// networks and clocks do not.
//
//	st, err := redis.Open(ctx, []string{"redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"}, nil)
//	c := leasehold.New(st, nil)
//	err = c.Mutex("invoices/42").Do(ctx, func(ctx context.Context, l *leasehold.Lease) error {
//		return charge(ctx, l.Token()) // ctx ends before anyone else can hold the lock
//	})
//
// A [Lock] is a recipe; locking it gives a [Lease]: one grant to one owner, for
// a bounded time. The lease is renewed while it is held. When renewal fails for
// so long that its validity is about to end, its context ends with cause
// [ErrLost], LockOptions.Notice before another client can be granted the lock.
//
// Validity is counted from before the request was sent, on a clock that no
// stepped wall clock touches and that, on Linux, counts while the machine is
// suspended. What no lock can do is stop a holder that does not look: a paused
// process may write after its lease is over. The protected resource can, with
// the lease's fencing token: see [Lease.Token] and package fence.
//
// Where the locks live is the store's business: one process (store/memory),
// one machine (store/sql with a file), a Redis server or a majority of
// independent ones (store/redis). The store also looks at locks without taking
// them: see Inspect and List of [store.Store].
package leasehold
