package locks

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"

	"github.com/leasehold-dev/leasehold/internal/lab/load"
)

const redsyncModule = "github.com/go-redsync/redsync/v4"

func redsyncKind(n int, failFast bool, driver string) Kind {
	k := Kind{
		Name:  fmt.Sprintf("redsync-%s-%d", strings.ReplaceAll(driver, "-", ""), n),
		Label: fmt.Sprintf("redsync on %s, %s", driver, nodes(n)),
		Role:  Peer, Engine: Redis, Nodes: n, Module: redsyncModule,
		Sends: []string{"set", "setnx"}, // and it releases with a script
	}
	if failFast {
		k.Name, k.Label = k.Name+"-failfast", fmt.Sprintf("redsync on %s, fail-fast, %s", driver, nodes(n))
	}
	return k
}

// redsyncClient is one Redsync over pools of any driver.
func redsyncClient(pools []redis.Pool, failFast bool, closeAll func()) Client {
	rs := redsync.New(pools...)
	pair := func(name string) load.Pair {
		return redsyncPair{rs.NewMutex(name, redsync.WithExpiry(TTL), redsync.WithFailFast(failFast))}
	}
	return client{pair, closeAll}
}

type redsyncPair struct{ m *redsync.Mutex }

func (p redsyncPair) Lock(ctx context.Context) error { return p.m.LockContext(ctx) }

var errNotUnlocked = errors.New("redsync: not unlocked")

func (p redsyncPair) Unlock(ctx context.Context) error {
	ok, err := p.m.UnlockContext(ctx)
	if err == nil && !ok {
		return errNotUnlocked
	}
	if ok { // by a majority; errors of a minority do not count
		return nil
	}
	return err
}
