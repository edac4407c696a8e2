package zkstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/zkstore/internal/zk"
)

// ensemble is what a store knows of its servers, and its sessions with them.
type ensemble struct {
	o      Options
	acl    []zk.ACL
	node   string // names the servers in errors
	limits zk.Limits
	maxTTL time.Duration
	clock  clock.Clock
	voters int // members that vote; 0: a server that stands alone

	sessions *zk.Pool // nil until the limits are known
}

func newEnsemble(o Options) *ensemble {
	return &ensemble{o: o, acl: o.acl(), node: "zookeeper " + strings.Join(o.servers, ","), clock: clock.System()}
}

// openAgain is how long open waits before it asks the servers again.
const openAgain = 50 * time.Millisecond

// open asks one server after the other until one answers, such as when they have elected a leader. It returns the last
// error if ctx ends first, and an error that only a person can mend at once.
func (e *ensemble) open(ctx context.Context) error {
	var last error
	servers := e.o.shuffled()
	for try := 0; ; try++ {
		wait := min(openAgain<<min(try/len(servers), 5), time.Second)
		err := e.openOnce(ctx, servers, 20*wait)
		if err != nil && ctx.Err() != nil {
			return cmp.Or(last, err)
		}
		last = err
		if err == nil || errors.Is(err, store.ErrUnsupported) || errors.Is(err, zk.ErrStranger) && try+1 >= len(servers) || errors.As(explain(err, e.o.Base), new(explained)) {
			return err
		}
		e.close(nil)
		servers = append(servers[1:], servers[0])
		clock.Sleep(ctx, wait/2+rand.N(wait/2))
	}
}

// openOnce asks the first server for its limits, which has to answer within patience, and makes the node
// of Options.Base.
func (e *ensemble) openOnce(ctx context.Context, servers []string, patience time.Duration) (err error) {
	limited, cancel := context.WithTimeout(ctx, patience)
	e.limits, err = zk.AskLimits(limited, servers[0])
	cancel()
	if err != nil {
		return err
	}
	if e.maxTTL, err = e.o.applyTo(&e.limits); err != nil {
		return err
	}
	var auth []zk.Identity
	for _, i := range e.o.Auth {
		auth = append(auth, zk.Identity(i))
	}
	e.sessions = zk.NewPool(zk.Options{Servers: servers, Auth: auth, Base: e.o.Base, Limits: e.limits, Clock: e.clock})
	t, err := e.anyTree(ctx)
	if err != nil {
		return err
	}
	if err := t.makeParents(ctx, e.o.Base); err != nil {
		return err
	}
	return e.countVoters(ctx, t)
}

// close gives the sessions up. Sessions with leases end by themselves.
func (e *ensemble) close(withLeases map[*zk.Session]bool) {
	if e.sessions != nil {
		e.sessions.Close(withLeases)
	}
}

// countVoters learns how many members vote. Without the right to look, the store takes the
// ensemble for a server that stands alone.
func (e *ensemble) countVoters(ctx context.Context, t tree) error {
	n, ok, err := t.Get(ctx, configNode)
	if err == nil && ok {
		e.voters = voters(string(n.Data))
	}
	if errors.Is(err, zk.ErrNoAuth) {
		return nil
	}
	return err
}

// class returns the strongest guarantee that the servers give.
func (e *ensemble) class() store.Class {
	if e.voters >= 3 {
		return store.Consensus
	}
	return store.CrashSafe
}

// tree returns an established session for leases of that TTL.
func (e *ensemble) tree(ctx context.Context, ttl time.Duration) (tree, error) {
	ss, err := e.sessions.Get(ctx, ttl)
	return tree{ss, e.o.Base, e.acl, e.limits.Most}, err
}

// anyTree is tree for calls that concern no lease.
func (e *ensemble) anyTree(ctx context.Context) (tree, error) {
	ss, err := e.sessions.Any(ctx, min(usualTTL, e.maxTTL))
	return tree{ss, e.o.Base, e.acl, e.limits.Most}, err
}

// usualTTL is that of the session of calls that concern no lease: the default of the client.
const usualTTL = 30 * time.Second

// applyTo takes o.Tick for the servers' tickTime, and returns the longest TTL.
func (o *Options) applyTo(l *zk.Limits) (maxTTL time.Duration, err error) {
	if o.Tick > 0 {
		l.Tick = (o.Tick + time.Millisecond - 1).Truncate(time.Millisecond)
	}
	switch most := l.MaxTTL(); {
	case most < l.Tick:
		return 0, fmt.Errorf("%w: the longest session that the servers grant lasts %v, which is too short with a tick of %v: raise maxSessionTimeout on every server", store.ErrUnsupported, l.Most, l.Tick)
	case o.MaxTTL > most:
		return 0, fmt.Errorf("%w: MaxTTL is %v, and the servers allow %v: raise maxSessionTimeout on every server to at least %v", store.ErrUnsupported, o.MaxTTL, most, l.Class(o.MaxTTL)+l.Slack())
	case o.MaxTTL > 0:
		return max(o.MaxTTL, l.Tick), nil
	default:
		return most, nil
	}
}

// configNode is where ZooKeeper shows the members of the ensemble.
const configNode = "/zookeeper/config"

// voters returns how many members of an ensemble vote, 0 if it is a server that stands
// alone.
func voters(config string) (n int) {
	for line := range strings.Lines(config) {
		if strings.HasPrefix(line, "server.") && !strings.Contains(line, ":observer") {
			n++
		}
	}
	return n
}
