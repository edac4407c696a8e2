package zkstore

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/leasehold-dev/leasehold/internal/audience"
	"github.com/leasehold-dev/leasehold/internal/gate"
	"github.com/leasehold-dev/leasehold/internal/unclaimed"
	"github.com/leasehold-dev/leasehold/store"
)

// engine keeps locks in ZooKeeper. It has places in its sessions: those of its leases, and those that no
// Wait has claimed.
type engine struct {
	*ensemble
	gate     *gate.Gate
	leases   leases
	rejoined unclaimed.Places[reserved]
	free     freeLocks
	marks    marks
	audience audience.Audience // is told whose leases were broken,
	listens  sync.Once         // from the first NotifyBroken on
}

// Open returns a store on the ensemble that a URL names:
//
//	zookeeper://USER:PASSWORD@HOST:PORT,HOST:PORT/BASE?reader=SCHEME:ID&tick=2s&max_ttl=20s
//
// The hosts are all members of one ensemble, or some of them. Each Store connects to them in an
// order of its own. USER and PASSWORD are an identity of scheme digest, for Options.Auth.
// Without a port, it is 2181; without BASE it is /leasehold. There may be several readers.
// A nil o means the defaults. If the URL or the options are wrong, the error matches
// store.ErrInvalid and contains no password.
//
// Open blocks until a server has answered and the node of Options.Base is there, ctx ends or
// Options.Timeout passes.
//
// An error of the store that concerns neither the lock nor the caller's context is a
// *store.QuorumError with one node, which stands for all servers.
func Open(ctx context.Context, url string, o *Options) (*store.Store, error) {
	c, err := parseURL(url, o)
	if err != nil {
		return nil, err
	}
	e, err := openEngine(ctx, &c)
	if err != nil {
		return nil, err
	}
	return store.New(e), nil
}

func openEngine(ctx context.Context, o *Options) (*engine, error) {
	checked, err := o.checked()
	if err != nil {
		return nil, err
	}
	s := &engine{ensemble: newEnsemble(checked), gate: gate.New(store.ErrClosed)}
	ctx, cancel := s.timed(ctx)
	defer cancel()
	if err := s.open(ctx); err != nil {
		if errors.Is(err, store.ErrUnsupported) {
			err = fmt.Errorf("open locks in %s: %w", s.node, err)
		} else {
			err = s.failed(ctx, "open", "", err)
		}
		s.Close()
		return nil, err
	}
	return s, nil
}

// Caps implements driver.Engine.
func (s *engine) Caps() store.Caps {
	return store.Caps{
		Engine:     "zookeeper",
		Nodes:      1,
		Quorum:     1,
		MinTTL:     s.limits.Tick,
		MaxTTL:     s.maxTTL,
		Resolution: s.limits.Slack() + 2*s.limits.Tick,
		Reach:      "network",
		Clock:      "the elapsed time of the ensemble's leader",
		Class:      s.class(),
		Timeout:    s.o.Timeout,
		Rejoins:    true,
		NoResize:   true,
		Notifies:   true,
	}
}

// require returns an error if the servers cannot give the class of a lease.
func (s *engine) require(l store.Lease) error {
	err := l.CheckClass(s.Caps())
	if err != nil && s.voters > 0 {
		err = fmt.Errorf("%w: the ensemble has %d voting members, and needs 3", err, s.voters)
	}
	return err
}

// Resize implements driver.Engine. The size of a semaphore is in the names of its places.
func (s *engine) Resize(context.Context, string, store.Kind, store.Kind) error {
	return store.ErrUnsupported
}

// Close implements driver.Engine. It waits for pending calls and clean-up, for at most
// Options.Timeout. Pending Waits leave the queue. Sessions with leases are left to end by
// themselves.
func (s *engine) Close() error {
	first := s.gate.Close(s.o.Timeout, func() {
		for _, p := range s.rejoined.Close() {
			s.remove(p.place)
		}
	})
	if first {
		s.ensemble.close(s.leases.close())
	}
	return nil
}

// timed bounds what the Store does not: a part of a Wait, or what is no call of it.
func (s *engine) timed(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, s.o.Timeout, store.ErrTimeLimit)
}
