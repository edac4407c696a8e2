package zk

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Options configure a Pool.
type Options struct {
	// Servers are asked in this order.
	Servers []string
	Auth    []Identity
	// Base is a node that exists once Prove is called, and that the identity may read.
	Base   string
	Limits Limits
	Clock  clock.Clock
}

// Identity is an identity of one of ZooKeeper's authentication schemes.
type Identity struct{ Scheme, ID string }

// Pool has a session for each class of TTLs, once there was a lease of that. It is safe for concurrent use.
type Pool struct {
	o       Options
	workers sync.WaitGroup // of sessions

	mu     sync.Mutex
	closed bool
	// sessions has the session of each class that is not over.
	sessions map[time.Duration]*Session
}

// Why a session of a closed pool is over: the servers are to end it, or it is left to them.
var (
	errClosed = errors.New("closed")
	errLeft   = fmt.Errorf("%w", errClosed)
)

// NewPool returns a pool without sessions.
func NewPool(o Options) *Pool {
	return &Pool{o: o, sessions: make(map[time.Duration]*Session)}
}

// Get returns a session for leases of that TTL that is established.
func (s *Pool) Get(ctx context.Context, ttl time.Duration) (*Session, error) {
	class := s.o.Limits.Class(ttl)
	s.mu.Lock()
	ss := s.sessions[class]
	if ss == nil || ss.Ended() {
		if s.closed {
			s.mu.Unlock()
			return nil, errClosed
		}
		ss = s.newSession(class)
		s.workers.Go(ss.run)
		s.sessions[class] = ss
	}
	s.mu.Unlock()
	if _, err := ss.reach(ctx); err != nil && !ss.established() {
		if why := ss.Reason(); why != nil && !ss.Ended() {
			err = fmt.Errorf("%w: %w", why, err)
		}
		return nil, err
	}
	return ss, nil
}

// Any returns an established session of whatever class, or otherwise what Get does.
func (s *Pool) Any(ctx context.Context, ttl time.Duration) (*Session, error) {
	s.mu.Lock()
	for _, ss := range s.sessions {
		if ss.established() {
			s.mu.Unlock()
			return ss, nil
		}
	}
	s.mu.Unlock()
	return s.Get(ctx, ttl)
}

// established reports whether the session was established and is not over.
func (ss *Session) established() bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.id != 0 && !ss.Ended()
}

// Close gives all sessions up. The servers end those that are not in use. The others end when
// their timeout has passed.
func (s *Pool) Close(inUse map[*Session]bool) {
	s.mu.Lock()
	s.closed = true
	for _, ss := range s.sessions {
		why := errClosed
		if inUse[ss] {
			why = errLeft
		}
		ss.finish(why)
	}
	s.mu.Unlock()
	s.workers.Wait()
}
