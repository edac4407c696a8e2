package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Enter counts a user, so that the session is kept until leave is called.
func (ss *Session) Enter() (leave func()) {
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

// outcome is the result of a call.
type outcome[T any] struct {
	value T
	err   error
}

// Call makes a call of the library, which knows no contexts, once there is a connection.
// If ctx ends after that, the call goes on by itself.
func Call[T any](ctx context.Context, ss *Session, do func(c *zk.Conn) (T, error)) (T, error) {
	var none T
	leave := ss.Enter()
	if _, err := ss.link.reach(ctx, false); err != nil {
		leave()
		return none, err
	}
	if ctx.Done() == nil {
		defer leave()
		return do(ss.conn) // the library ends it once the session is over
	}
	done := make(chan outcome[T], 1)
	go func() {
		defer leave()
		v, err := do(ss.conn)
		done <- outcome[T]{v, err}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		return none, ctx.Err()
	case <-ss.Over:
		return none, ss.Reason()
	}
}

// Broken reports whether a call failed with its connection, or its answer makes no sense, so
// that the outcome is unknown while the session goes on.
func Broken(err error) bool {
	return err != nil && brokenBy(err)
}

func brokenBy(err error) bool {
	return errors.Is(err, errStrange) || errors.Is(err, zk.ErrConnectionClosed) || errors.Is(err, zk.ErrNoServer) || errors.Is(err, zk.ErrSessionMoved) || isNetwork(err)
}

// List returns the children of a node, none if there is no such node. It repeats the call
// if the connection breaks.
func (ss *Session) List(ctx context.Context, path string) ([]string, error) {
	a, err := ss.Ask(ctx, List(path))
	if err != nil {
		return nil, err
	}
	return a[0].Names()
}

// Get returns a node; ok is false if there is none.
func (ss *Session) Get(ctx context.Context, path string) (n Node, ok bool, err error) {
	a, err := ss.Ask(ctx, Read(path))
	if err != nil {
		return n, false, err
	}
	return a[0].Node()
}

// Sync waits until the server knows what the leader knows now.
func (ss *Session) Sync(ctx context.Context) error {
	a, err := ss.Ask(ctx, Sync(ss.pool.o.Base))
	if err != nil {
		return err
	}
	return a[0].Err
}

// Again repeats a call that can be repeated until the connection does not break.
func Again[T any](ctx context.Context, ss *Session, do func(c *zk.Conn) (T, error)) (T, error) {
	for {
		changes := ss.Changes()
		v, err := Call(ctx, ss, do)
		if !Broken(err) {
			return v, err
		}
		select {
		case <-changes:
		case <-ss.Over:
			return v, ss.Reason()
		case <-ctx.Done():
			return v, fmt.Errorf("%w: %w", err, ctx.Err())
		}
	}
}

// Proven returns an instant from which on the session certainly lives for its class. The
// servers have answered a write that was sent at or after that instant. Proven does not block.
func (ss *Session) Proven() clock.Instant {
	proven, _, _ := ss.link.contacts(0)
	return proven
}

// Prove waits until the session certainly lives for its class from at on, or from later.
func (ss *Session) Prove(ctx context.Context, at clock.Instant) (clock.Instant, error) {
	for {
		proven, written, changes := ss.link.contacts(at)
		switch {
		case proven >= at:
			return proven, nil
		case written < at:
			// A write that changes nothing. Unlike a read or a sync, a majority accepts it.
			a, err := ss.Ask(ctx, Multi(Check(ss.pool.o.Base)))
			if err == nil {
				_, err = a[0].Each(1)
			}
			if err != nil {
				return 0, err
			}
			continue
		}
		select { // the next touch
		case <-changes:
		case <-ss.Over:
			return 0, ss.Reason()
		case <-ctx.Done():
			return 0, fmt.Errorf("answers came back too late to be certain of the session: %w", ctx.Err())
		}
	}
}

// isNetwork reports whether err is one of a connection.
func isNetwork(err error) bool {
	var n net.Error
	return errors.As(err, &n) && !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// Delete deletes a node. there is false if there was none, and true if there was one or
// may have been one. The zxid is that of the transaction, if that is known.
func (ss *Session) Delete(ctx context.Context, path string) (zxid int64, there bool, err error) {
	for unsure := false; ; unsure = true {
		b, err := ss.Send(ctx, Delete(path))
		if err != nil {
			return 0, true, err
		}
		a, err := b.Wait(ctx)
		if err != nil {
			return 0, true, err
		}
		if there, err := a[0].Deleted(); !Broken(err) {
			if there && err == nil {
				zxid = a[0].zxid
			}
			return zxid, there || unsure || err != nil, err
		}
	}
}

// Zxid returns that of the last transaction that the servers have told this session of.
func (ss *Session) Zxid() int64 { return ss.link.zxid.Load() }
