package zkstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/zkstore/internal/session"
)

// outcomeOf says what an error is for the servers.
func outcomeOf(err error) store.Outcome {
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return store.TimedOut
	case session.Broken(err), errors.Is(err, session.ErrOver), errors.Is(err, zk.ErrClosing), errors.Is(err, zk.ErrSessionExpired):
		return store.Unreachable
	case errors.Is(err, zk.ErrNotEmpty): // see place.countAnew
		return store.Taken
	}
	return store.Refused
}

// failed turns err into the error that the caller of a method gets. ctx is that of the method, or
// of timed.
func (s *engine) failed(ctx context.Context, op, name string, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, store.ErrTimeLimit) {
		if name == "" {
			return fmt.Errorf("%s in %s: %w", op, s.node, ctx.Err())
		}
		return fmt.Errorf("%s %q in %s: %w", op, name, s.node, ctx.Err())
	}
	n := store.NodeOutcome{Node: s.node, Outcome: outcomeOf(err), Err: plain(explain(err, s.o.Base))}
	if errors.Is(context.Cause(ctx), store.ErrTimeLimit) {
		// The error of the limit is not one of the caller's context.
		n.Outcome, n.Err = store.TimedOut, fmt.Errorf("no success within %v: %v", s.o.Timeout, plain(explain(err, s.o.Base)))
	}
	return &store.QuorumError{Op: op, Name: name, Store: "zookeeper", Need: 1, Nodes: []store.NodeOutcome{n}}
}
