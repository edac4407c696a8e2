package zkstore

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/gate"
	"github.com/leasehold-dev/leasehold/store"
)

// Store is a store.Waiter in ZooKeeper. Its methods are safe for concurrent use.
//
// An error that concerns neither the lock nor the caller's context is a
// *store.QuorumError with one node, which stands for all servers.
type Store struct {
	o      Options
	acl    []zk.ACL
	node   string // for people
	limits limits
	clock  clock.Clock
	gate   *gate.Gate
	voters atomic.Int64

	workers sync.WaitGroup // of sessions
	mu      sync.Mutex
	closed  bool
	// sessions has the session of each class that is not over.
	sessions map[time.Duration]*session
	leases   leases
	busy     lately
}

var _ store.Waiter = (*Store)(nil)

// Open returns a store on the servers that o names. It blocks until a server has answered
// and the node of Options.Base is there, ctx ends or Options.Timeout passes.
func Open(ctx context.Context, o *Options) (*Store, error) {
	checked, err := o.checked()
	if err != nil {
		return nil, err
	}
	s := &Store{
		o:        checked,
		acl:      checked.acl(),
		node:     "zookeeper " + strings.Join(checked.Servers, ","),
		clock:    clock.System(),
		gate:     gate.New(),
		sessions: make(map[time.Duration]*session),
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
	if s.limits, err = s.o.limits(ctx); err != nil {
		if errors.Is(err, store.ErrUnsupported) {
			return fmt.Errorf("open locks in %s: %w", s.node, err)
		}
		return s.failed(ctx, "open", "", err)
	}
	ss, leave, err := s.anySession(ctx)
	if err != nil {
		return s.failed(ctx, "open", "", err)
	}
	defer leave()
	if err := ss.makeParents(ctx, s.o.Base); err != nil {
		return s.failed(ctx, "open", "", err)
	}
	s.countVoters(ctx, ss)
	return nil
}

// countVoters learns what the ensemble is. Without the right to look, the store takes it
// for a server that stands alone.
func (s *Store) countVoters(ctx context.Context, ss *session) {
	if n, ok, err := ss.get(ctx, configNode); err == nil && ok {
		s.voters.Store(int64(voters(string(n.data))))
	}
}

// makeParents makes the nodes of a path. They remain when they are empty.
func (ss *session) makeParents(ctx context.Context, p string) error {
	var missing []string
	for ; p != "/"; p = path.Dir(p) {
		_, ok, err := ss.get(ctx, p)
		if err != nil {
			return explain(err, p)
		}
		if ok {
			break
		}
		missing = append(missing, p)
	}
	for i := len(missing) - 1; i >= 0; i-- {
		_, err := again(ctx, ss, func(c *zk.Conn) (string, error) { return c.Create(missing[i], nil, zk.FlagPersistent, ss.s.acl) })
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return explain(err, missing[i])
		}
	}
	return nil
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
		MinTTL:     s.limits.tick,
		MaxTTL:     s.limits.maxTTL,
		Resolution: s.limits.slack() + 2*s.limits.tick,
		Reach:      "network",
		Clock:      "the elapsed time of the ensemble's leader",
		Class:      class,
	}
}

// Close implements store.Store. It waits for pending calls and clean-up, for at most
// Options.Timeout. Pending Waits leave the queue. The sessions are left to end by
// themselves, and the leases with them.
func (s *Store) Close() error {
	idle, first := s.gate.Close()
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
	s.mu.Lock()
	s.closed = true
	for _, ss := range s.sessions {
		ss.end(store.ErrClosed)
	}
	s.mu.Unlock()
	s.workers.Wait()
	return nil
}

// anySession returns an established session, for calls that concern no lease.
func (s *Store) anySession(ctx context.Context) (*session, func(), error) {
	s.mu.Lock()
	for _, ss := range s.sessions {
		select {
		case <-ss.ready:
			if !ss.ended() {
				leave := ss.enter()
				s.mu.Unlock()
				return ss, leave, nil
			}
		default:
		}
	}
	s.mu.Unlock()
	return s.session(ctx, min(usualTTL, s.limits.maxTTL))
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

// dir returns the node that has the places of a lock.
func (s *Store) dir(name string) string { return s.o.Base + "/" + escape(name) }
