package zkstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/zkstore/internal/session"
)

// ensemble is what a store knows of its servers, and its sessions with them.
type ensemble struct {
	o      Options
	acl    []zk.ACL
	node   string // names the servers in errors
	limits session.Limits
	maxTTL time.Duration
	clock  clock.Clock
	voters atomic.Int64

	sessions *session.Pool // nil until the limits are known
}

func newEnsemble(o Options) *ensemble {
	return &ensemble{o: o, acl: o.acl(), node: "zookeeper " + strings.Join(o.servers, ","), clock: clock.System()}
}

// openAgain is how long open waits before it asks the servers again.
const openAgain = 50 * time.Millisecond

// open asks the servers until one answers, such as when they have elected a leader. It returns the last
// error if ctx ends first, and an error that only a person can mend at once.
func (e *ensemble) open(ctx context.Context) error {
	var last error
	for wait := openAgain; ; wait = min(2*wait, time.Second) {
		err := e.openOnce(ctx)
		if err != nil && ctx.Err() != nil {
			return cmp.Or(last, err)
		}
		last = err
		if err == nil || errors.Is(err, store.ErrUnsupported) || errors.Is(err, session.ErrStranger) || errors.As(explain(err, e.o.Base), new(explained)) {
			return err
		}
		e.close()
		pause := time.NewTimer(wait/2 + rand.N(wait/2))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return err
		}
	}
}

// openOnce asks the servers for their limits, and makes the node of Options.Base.
func (e *ensemble) openOnce(ctx context.Context) (err error) {
	servers := e.o.shuffled()
	if e.limits, err = session.AskLimits(ctx, servers); err != nil {
		return err
	}
	if e.maxTTL, err = e.o.applyTo(&e.limits); err != nil {
		return err
	}
	var auth []session.Identity
	for _, i := range e.o.Auth {
		auth = append(auth, session.Identity(i))
	}
	e.sessions = session.NewPool(session.Options{Servers: servers, Auth: auth, Base: e.o.Base, Limits: e.limits, Clock: e.clock})
	t, leave, err := e.anyTree(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if err := t.makeParents(ctx, e.o.Base); err != nil {
		return err
	}
	return e.countVoters(ctx, t)
}

// close gives the sessions up. Those with leases end by themselves.
func (e *ensemble) close() {
	if e.sessions != nil {
		e.sessions.Close()
	}
}

// countVoters learns how many members vote. Without the right to look, the store takes the
// ensemble for a server that stands alone.
func (e *ensemble) countVoters(ctx context.Context, t tree) error {
	n, ok, err := t.Get(ctx, configNode)
	if err == nil && ok {
		e.voters.Store(int64(voters(string(n.Data))))
	}
	if errors.Is(err, zk.ErrNoAuth) {
		return nil
	}
	return err
}

// class returns the strongest guarantee that the servers give.
func (e *ensemble) class() store.Class {
	if e.voters.Load() >= 3 {
		return store.Consensus
	}
	return store.CrashSafe
}

// require returns an error if the servers cannot give the class.
func (e *ensemble) require(c store.Class) error {
	if have := e.class(); c > have {
		why := "it is one server"
		if n := e.voters.Load(); n > 0 {
			why = fmt.Sprintf("its ensemble has %d voting members, and %v needs 3", n, c)
		}
		return fmt.Errorf("%w: %v is required, and %s gives %v: %s", store.ErrUnsupported, c, e.node, have, why)
	}
	return nil
}

// tree returns an established session for leases of that TTL. The caller calls leave when
// it is done with the session.
func (e *ensemble) tree(ctx context.Context, ttl time.Duration) (t tree, leave func(), err error) {
	ss, leave, err := e.sessions.Get(ctx, ttl)
	return tree{ss, e.o.Base, e.acl, e.limits.Most}, leave, err
}

// anyTree is tree for calls that concern no lease.
func (e *ensemble) anyTree(ctx context.Context) (t tree, leave func(), err error) {
	ss, leave, err := e.sessions.Any(ctx, min(usualTTL, e.maxTTL))
	return tree{ss, e.o.Base, e.acl, e.limits.Most}, leave, err
}

// usualTTL is that of the session of calls that concern no lease: the default of the client.
const usualTTL = 30 * time.Second
