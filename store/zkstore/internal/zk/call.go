package zk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Connected waits until there is a connection. Lost is closed when nothing more is answered on it.
func (ss *Session) Connected(ctx context.Context) (lost <-chan struct{}, err error) {
	c, err := ss.reach(ctx)
	if err != nil {
		return nil, err
	}
	return c.gone, nil
}

// Once sends requests together, once there is a connection, and waits for their answers. If the
// connection breaks before, the errors of those that are lost are Broken.
func (ss *Session) Once(ctx context.Context, requests ...Request) ([]Answer, error) {
	c, err := ss.reach(ctx)
	if err != nil {
		return nil, err
	}
	b := c.ask(requests...)
	select {
	case <-b.done:
		return b.answers, nil
	case <-ss.Over:
		return nil, ss.Reason()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Ask sends requests that can be repeated, together, and waits for all answers. It repeats
// them until the connection does not break.
func (ss *Session) Ask(ctx context.Context, requests ...Request) ([]Answer, error) {
	for {
		answers, err := ss.Once(ctx, requests...)
		if err != nil || !slices.ContainsFunc(answers, func(a Answer) bool { return Broken(a.Err) }) {
			return answers, err
		}
	}
}

// Commit makes one transaction of these parts, and repeats it until the connection does not break:
// then the error is that of a part, perhaps because the transaction was made already.
func (ss *Session) Commit(ctx context.Context, parts ...Request) ([]Answer, error) {
	a, err := ss.Ask(ctx, Multi(parts...))
	if err != nil {
		return nil, err
	}
	return a[0].Each(len(parts))
}

// Do asks for something that can be repeated, and returns only whether it was done.
func (ss *Session) Do(ctx context.Context, r Request) error {
	a, err := ss.Ask(ctx, r)
	if err != nil {
		return err
	}
	return a[0].Err
}

// List returns the children of a node, none if there is no such node.
func (ss *Session) List(ctx context.Context, path string) ([]string, error) {
	a, err := ss.Ask(ctx, List(path))
	if err != nil {
		return nil, err
	}
	names, _, err := a[0].Names()
	return names, err
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
func (ss *Session) Sync(ctx context.Context) error { return ss.Do(ctx, Sync(ss.pool.o.Base)) }

// Delete deletes a node of that version. there is false if there was none, and true if there was one or
// may have been one. zxid is that of the transaction, 0 if it is not known.
func (ss *Session) Delete(ctx context.Context, path string, version int32) (there bool, zxid int64, err error) {
	for unsure := false; ; unsure = true {
		a, err := ss.Once(ctx, Delete(path, version))
		switch {
		case err != nil:
			return true, 0, err
		case errors.Is(a[0].Err, ErrNoNode):
			return unsure, 0, nil
		case !Broken(a[0].Err):
			return true, a[0].zxid, a[0].Err
		}
	}
}

// Proven returns an instant from which on the session certainly lives for its class. The
// servers have answered a write that was sent at or after that instant. Proven does not block.
func (ss *Session) Proven() clock.Instant {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.contact.proven
}

// Prove waits until the session certainly lives for its class from at on, or from later. If several
// callers need a write for that, one makes it.
func (ss *Session) Prove(ctx context.Context, at clock.Instant) (clock.Instant, error) {
	for {
		ss.mu.Lock()
		proven, write := ss.contact.proven, max(ss.contact.written, ss.asked) < at
		var changed <-chan struct{}
		switch {
		case proven >= at:
		case write:
			ss.asked = ss.pool.o.Clock.Now()
		default:
			changed = ss.changedLocked()
		}
		ss.mu.Unlock()
		switch {
		case proven >= at:
			return proven, nil
		case write:
			// A write that changes nothing. Unlike a read or a sync, a majority accepts it.
			_, err := ss.Commit(ctx, Check(ss.pool.o.Base, AnyVersion))
			if err == nil {
				continue
			}
			ss.mu.Lock()
			defer ss.mu.Unlock()
			ss.asked = 0
			ss.notifyLocked() // others ask for themselves
			return 0, err
		}
		select { // the next touch
		case <-changed:
		case <-ss.Over:
			return 0, ss.Reason()
		case <-ctx.Done():
			return 0, fmt.Errorf("answers came back too late to be certain of the session: %w", ctx.Err())
		}
	}
}

// Broken reports whether a request failed with its connection, or its answer makes no sense, so
// that the outcome is unknown while the session goes on.
func Broken(err error) bool {
	var n net.Error
	return errors.Is(err, errStrange) || errors.Is(err, ErrLost) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.As(err, &n) && !errors.Is(err, context.DeadlineExceeded)
}
