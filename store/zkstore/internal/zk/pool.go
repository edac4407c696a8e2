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

// Pool has a session for each class of TTLs. It is safe for concurrent use.
type Pool struct {
	o       Options
	workers sync.WaitGroup // of sessions

	mu     sync.Mutex
	closed bool
	// sessions has the session of each class that is not over.
	sessions map[time.Duration]*Session
}

// idleAfter is how long a session is kept that nobody uses.
const idleAfter = time.Minute

// errClosed is why a session of a closed pool is over.
var errClosed = errors.New("closed")

// NewPool returns a pool without sessions.
func NewPool(o Options) *Pool {
	return &Pool{o: o, sessions: make(map[time.Duration]*Session)}
}

// Get returns a session for leases of that TTL that is established. The caller calls leave
// when it needs the session no more.
func (s *Pool) Get(ctx context.Context, ttl time.Duration) (ss *Session, leave func(), err error) {
	class := s.o.Limits.Class(ttl)
	s.mu.Lock()
	ss = s.sessions[class]
	if ss == nil || ss.Ended() {
		if s.closed {
			s.mu.Unlock()
			return nil, nil, errClosed
		}
		ss = s.newSession(class)
		s.workers.Go(ss.run)
		s.sessions[class] = ss
	}
	leave = ss.Enter()
	s.mu.Unlock()
	if _, err := ss.reach(ctx); err != nil && !ss.established() {
		leave()
		if why := ss.Reason(); why != nil && !ss.Ended() {
			err = fmt.Errorf("%w: %w", why, err)
		}
		return nil, nil, err
	}
	return ss, leave, nil
}

// Any returns an established session of whatever class, or otherwise what Get does.
func (s *Pool) Any(ctx context.Context, ttl time.Duration) (*Session, func(), error) {
	s.mu.Lock()
	for _, ss := range s.sessions {
		if ss.established() {
			leave := ss.Enter()
			s.mu.Unlock()
			return ss, leave, nil
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

// retire ends the session if nobody has used it for a while, and reports whether it did.
func (s *Pool) retire(ss *Session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.users > 0 || time.Since(ss.used) < idleAfter {
		return false
	}
	if s.sessions[ss.class] == ss {
		delete(s.sessions, ss.class)
	}
	ss.endLocked(ErrOver)
	return true
}

// Close gives all sessions up. The servers end those that nobody uses. The others end when
// their timeout has passed.
func (s *Pool) Close() {
	s.mu.Lock()
	s.closed = true
	for _, ss := range s.sessions {
		ss.mu.Lock()
		ss.endLocked(errClosed)
		ss.mu.Unlock()
	}
	s.mu.Unlock()
	s.workers.Wait()
}
