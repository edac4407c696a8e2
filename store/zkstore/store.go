package zkstore

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/gate"
	"github.com/leasehold-dev/leasehold/internal/unclaimed"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/zkstore/internal/session"
)

// Store is a store.Rejoiner in ZooKeeper. Its methods are safe for concurrent use.
//
// An error that concerns neither the lock nor the caller's context is a
// *store.QuorumError with one node, which stands for all servers.
type Store struct {
	o      Options
	acl    []zk.ACL
	node   string // for people
	limits session.Limits
	maxTTL time.Duration
	clock  clock.Clock
	gate   *gate.Gate
	voters atomic.Int64

	sessions *session.Pool // nil until the limits are known
	leases   leases
	rejoined unclaimed.Places[reserved]
	busy     lately
}

var _ store.Rejoiner = (*Store)(nil)

// Open returns a store on the servers that o names. It blocks until a server has answered
// and the node of Options.Base is there, ctx ends or Options.Timeout passes.
func Open(ctx context.Context, o *Options) (*Store, error) {
	checked, err := o.checked()
	if err != nil {
		return nil, err
	}
	s := &Store{
		o:     checked,
		acl:   checked.acl(),
		node:  "zookeeper " + strings.Join(checked.Servers, ","),
		clock: clock.System(),
		gate:  gate.New(),
		busy:  lately{guessFor: usualGuess},
	}
	if err := s.open(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Store) open(ctx context.Context) (err error) {
	ctx, cancel := s.limited(ctx)
	defer cancel()
	servers := s.o.shuffled()
	if s.limits, err = session.AskLimits(ctx, servers); err != nil {
		return s.failed(ctx, "open", "", err)
	}
	if s.maxTTL, err = s.o.applyTo(&s.limits); err != nil {
		return fmt.Errorf("open locks in %s: %w", s.node, err)
	}
	var auth []session.Identity
	for _, i := range s.o.Auth {
		auth = append(auth, session.Identity(i))
	}
	s.sessions = session.NewPool(session.Options{Servers: servers, Auth: auth, Base: s.o.Base, Limits: s.limits, Clock: s.clock})
	t, leave, err := s.anyTree(ctx)
	if err != nil {
		return s.failed(ctx, "open", "", err)
	}
	defer leave()
	if err := t.makeParents(ctx, s.o.Base); err != nil {
		return s.failed(ctx, "open", "", err)
	}
	s.countVoters(ctx, t)
	return nil
}

// countVoters learns what the ensemble is. Without the right to look, the store takes it
// for a server that stands alone.
func (s *Store) countVoters(ctx context.Context, t tree) {
	if n, ok, err := t.Get(ctx, configNode); err == nil && ok {
		s.voters.Store(int64(voters(string(n.Data))))
	}
}

// Caps implements store.Store.
func (s *Store) Caps() store.Caps {
	class := store.CrashSafe
	if s.voters.Load() >= 3 {
		class = store.Consensus
	}
	return store.Caps{
		Engine:     "zookeeper",
		Nodes:      1,
		Quorum:     1,
		MinTTL:     s.limits.Tick,
		MaxTTL:     s.maxTTL,
		Resolution: s.limits.Slack() + 2*s.limits.Tick,
		Reach:      "network",
		Clock:      "the elapsed time of the ensemble's leader",
		Class:      class,
		Kinds:      true,
		Rejoins:    true,
	}
}

// Close implements store.Store. It waits for pending calls and clean-up, for at most
// Options.Timeout. Pending Waits leave the queue. Sessions with leases are left to end by
// themselves.
func (s *Store) Close() error {
	if s.gate.Enter(nil) != nil {
		return nil // it is closed already
	}
	idle, first := s.gate.Close()
	for _, p := range s.rejoined.Close() {
		s.remove(p.place)
	}
	s.gate.Leave()
	if !first {
		return nil
	}
	timer := time.NewTimer(s.o.Timeout)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
	}
	s.leases.close()
	if s.sessions != nil {
		s.sessions.Close()
	}
	return nil
}

// tree returns an established session for leases of that TTL. The caller calls leave when
// it needs it no more.
func (s *Store) tree(ctx context.Context, ttl time.Duration) (t tree, leave func(), err error) {
	ss, leave, err := s.sessions.Get(ctx, ttl)
	return tree{ss, s.o.Base, s.acl, s.limits.Most}, leave, err
}

// anyTree is tree for calls that concern no lease.
func (s *Store) anyTree(ctx context.Context) (t tree, leave func(), err error) {
	ss, leave, err := s.sessions.Any(ctx, min(usualTTL, s.maxTTL))
	return tree{ss, s.o.Base, s.acl, s.limits.Most}, leave, err
}

// usualTTL is that of the session of calls that concern no lease: the default of the client.
const usualTTL = 30 * time.Second

// limited returns a context that ends with ctx, when Options.Timeout has passed, and when
// the store is closed.
func (s *Store) limited(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.o.Timeout, errLimit)
	until, end := s.gate.Until(ctx)
	return until, func() { end(); cancel() }
}

// require returns an error if the store cannot give the class.
func (s *Store) require(c store.Class) error {
	if have := s.Caps().Class; c > have {
		why := "it is one server"
		if n := s.voters.Load(); n > 0 {
			why = fmt.Sprintf("its ensemble has %d voting members, and %v needs 3", n, c)
		}
		return fmt.Errorf("%w: %v is required, and %s gives %v: %s", store.ErrUnsupported, c, s.node, have, why)
	}
	return nil
}
