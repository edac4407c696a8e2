package locks

import (
	"context"
	"errors"
	"time"

	rl "github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"

	lh "github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/lab/load"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// Contended has the implementations in the form in which they wait for a lock that is
// held. Most do so by default.
var Contended = contended()

func contended() []Kind {
	return []Kind{
		waiting(5), lineOf(5), redsyncRueidis(5, false), redsyncGoredis(5, false),
		waiting(1), permitWaiting(), barging(1), lineOf(1), redsyncRueidis(1, false), redsyncGoredis(1, false), redislockWaiting(),
		rueidislockOf(1, false), rueidislockOf(2, false), inEtcd.waiting(), etcdMutex, inZooKeeper.waiting(), zookeeperLock, zookeeperFloor,
		postgresqlIn(store.CrashSafe).waiting(), postgresqlFloor(true), postgresqlIn(store.Efficiency).waiting(), postgresqlFloor(false), advisory,
		inFile.waiting(), gofrsFlock, flockCommand,
	}
}

// ContendedNamed returns the kind of that name in Contended.
func ContendedNamed(name string) (Kind, bool) {
	for _, k := range Contended {
		if k.Name == name {
			return k, true
		}
	}
	return Kind{}, false
}

// waiting is Leasehold with its default settings, waiting for its turn.
func waiting(n int) Kind { return waitingWith(leasehold(n), nil) }

// barging is notified that the lock is free, and is not handed it.
func barging(n int) Kind {
	k := waitingWith(leasehold(n), &redisstore.Options{Barge: true})
	k.Name, k.Label, k.Barges = k.Name+"-barge", k.Label+", barging", true
	return k
}

func waitingWith(k Kind, o *redisstore.Options) Kind {
	k.Open = func(ctx context.Context, addrs []string) (Client, error) {
		st, locks, err := Leasehold(ctx, addrs, o)
		if err != nil {
			return nil, err
		}
		return waitingClient(st, locks, lh.LockOptions{TTL: TTL}), nil
	}
	return k
}

func waitingClient(st *store.Store, locks *lh.Client, o lh.LockOptions) Client {
	pair := func(name string) load.Pair { return &leaseholdWaiting{lock: locks.Mutex(name).With(o)} }
	return client{pair, func() { st.Close() }}
}

type leaseholdWaiting struct {
	lock  *lh.Lock
	lease *lh.Lease
}

func (p *leaseholdWaiting) Lock(ctx context.Context) (err error) {
	p.lease, err = p.lock.Acquire(ctx)
	return err
}

func (p *leaseholdWaiting) Unlock(ctx context.Context) error { return p.lease.Release(ctx) }

// redislockBackoff is the pause between attempts in its documentation.
const redislockBackoff = 100 * time.Millisecond

// redislockWaiting asks again after a while, which redislock does not do by default.
func redislockWaiting() Kind {
	k := redislock
	k.Open = func(ctx context.Context, addrs []string) (Client, error) {
		c, err := dialGoredis(ctx, addrs[0])
		if err != nil {
			return nil, err
		}
		locker := rl.New(c)
		pair := func(name string) load.Pair {
			return &redislockRetrying{redislockPair{locker: locker, name: name}}
		}
		return client{pair, func() { c.Close() }}, nil
	}
	return k
}

type redislockRetrying struct{ redislockPair }

func (p *redislockRetrying) Lock(ctx context.Context) (err error) {
	p.lock, err = p.locker.Obtain(ctx, p.name, TTL, &rl.Options{RetryStrategy: rl.LinearBackoff(redislockBackoff)})
	return err
}

// GaveUp reports whether an error of a Lock only means that the lock stayed held for as
// long as the implementation waits by default.
func GaveUp(err error) bool {
	var taken *redsync.ErrTaken
	return errors.As(err, &taken) || errors.Is(err, redsync.ErrFailed) || errors.Is(err, rl.ErrNotObtained)
}
