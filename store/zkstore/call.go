package zkstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// session returns a session for leases of that TTL that is established. The caller calls
// leave when it needs the session no more.
func (s *Store) session(ctx context.Context, ttl time.Duration) (ss *session, leave func(), err error) {
	class := s.limits.class(ttl)
	s.mu.Lock()
	ss = s.sessions[class]
	if ss == nil || ss.ended() {
		if s.closed {
			s.mu.Unlock()
			return nil, nil, store.ErrClosed
		}
		ss = s.start(class)
		s.sessions[class] = ss
	}
	leave = ss.enter()
	s.mu.Unlock()
	select {
	case <-ss.ready:
		return ss, leave, nil
	case <-ss.over:
		leave()
		return nil, nil, ss.reason()
	case <-ctx.Done():
		leave()
		if why := ss.reason(); why != nil {
			return nil, nil, fmt.Errorf("%w: %w", why, ctx.Err())
		}
		return nil, nil, ctx.Err()
	}
}

// enter counts a user, so that the session is kept.
func (ss *session) enter() (leave func()) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.users++
	return func() {
		ss.mu.Lock()
		defer ss.mu.Unlock()
		ss.users--
		ss.used = time.Now()
	}
}

// retire ends the session if nobody has used it for a while, and reports whether it did.
func (s *Store) retire(ss *session) bool {
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
	ss.ending.Store(true)
	ss.endLocked(errSessionOver)
	return true
}

// idleAfter is how long a session is kept that nobody uses.
const idleAfter = time.Minute

// outcome is the result of a call.
type outcome[T any] struct {
	value T
	err   error
}

// call makes a call of the library, which knows no contexts. After the end of ctx the
// call goes on by itself.
func call[T any](ctx context.Context, ss *session, do func(c *zk.Conn) (T, error)) (T, error) {
	done := make(chan outcome[T], 1)
	leave := ss.enter()
	go func() {
		defer leave()
		v, err := do(ss.conn)
		done <- outcome[T]{v, err}
	}()
	var none T
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		return none, ctx.Err()
	case <-ss.over:
		return none, ss.reason()
	}
}

// broken reports whether a call failed with its connection, so that the outcome is
// unknown while the session goes on.
func broken(err error) bool {
	return errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrNoServer) || errors.Is(err, zk.ErrSessionMoved) || isNetwork(err)
}

// children returns the places of a lock in order. A lock without a node has none.
func (ss *session) children(ctx context.Context, dir string) (queue, error) {
	names, err := ss.list(ctx, dir)
	return queueOf(names), err
}

// list returns the children of a node, none if there is no such node. It repeats the call
// if the connection breaks.
func (ss *session) list(ctx context.Context, path string) ([]string, error) {
	names, err := again(ctx, ss, func(c *zk.Conn) ([]string, error) {
		names, _, err := c.Children(path)
		return names, err
	})
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	return names, err
}

// node is what a node says.
type node struct {
	data  []byte
	czxid int64
}

// get returns a node; ok is false if there is none.
func (ss *session) get(ctx context.Context, path string) (n node, ok bool, err error) {
	n, err = again(ctx, ss, func(c *zk.Conn) (node, error) {
		data, stat, err := c.Get(path)
		if err != nil {
			return node{}, err
		}
		return node{data, stat.Czxid}, nil
	})
	if errors.Is(err, zk.ErrNoNode) {
		return node{}, false, nil
	}
	return n, err == nil, err
}

// sync waits until the server knows what the leader knows now.
func (ss *session) sync(ctx context.Context) error {
	_, err := again(ctx, ss, func(c *zk.Conn) (string, error) { return c.Sync(ss.s.o.Base) })
	return err
}

// again repeats a call that can be repeated until the connection does not break.
func again[T any](ctx context.Context, ss *session, do func(c *zk.Conn) (T, error)) (T, error) {
	for {
		changes := ss.changes()
		v, err := call(ctx, ss, do)
		if !broken(err) {
			return v, err
		}
		select {
		case <-changes:
		case <-ss.over:
			return v, ss.reason()
		case <-ctx.Done():
			return v, fmt.Errorf("%w: %w", err, ctx.Err())
		}
	}
}

// prove waits until the session certainly lives for its class from at on, or from later.
func (ss *session) prove(ctx context.Context, at clock.Instant) (clock.Instant, error) {
	for {
		proven, written, changes := ss.contacts()
		switch {
		case proven >= at:
			return proven, nil
		case written < at:
			// A write that changes nothing. Unlike a read or a sync, a majority accepts it.
			_, err := again(ctx, ss, func(c *zk.Conn) ([]zk.MultiResponse, error) {
				return c.Multi(&zk.CheckVersionRequest{Path: ss.s.o.Base, Version: -1})
			})
			if err != nil {
				return 0, err
			}
			continue
		}
		select { // the next touch
		case <-changes:
		case <-ss.over:
			return 0, ss.reason()
		case <-ctx.Done():
			return 0, fmt.Errorf("answers came back too late to be certain of the session: %w", ctx.Err())
		}
	}
}
