package zkstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path"
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/zkstore/internal/zk"
)

// outcomeOf says what an error is for the servers.
func outcomeOf(err error) store.Outcome {
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return store.TimedOut
	case zk.Broken(err), errors.Is(err, zk.ErrOver):
		return store.Unreachable
	case errors.Is(err, zk.ErrNotEmpty): // see place.countAnew
		return store.Taken
	}
	return store.Refused
}

// isRefusal reports whether the error is about the lock and not about the servers.
func isRefusal(err error) bool {
	var kind *store.KindError
	return errors.Is(err, store.ErrBusy) || errors.Is(err, store.ErrInvalid) || errors.Is(err, store.ErrNotHeld) || errors.Is(err, store.ErrUnsupported) || errors.As(err, &kind)
}

// failed turns err into the error that the caller of a method gets: nil and refusals stay as they are. ctx is
// that of the method, or of timed.
func (s *engine) failed(ctx context.Context, op, name string, err error) error {
	switch {
	case err == nil, isRefusal(err) && !errors.Is(err, errBroken):
		return err
	case errors.Is(err, errBroken):
		return store.BrokenError(op, name)
	}
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

// explained is an error that says what to do.
type explained struct{ error }

func (e explained) Unwrap() error { return e.error }

// explain adds what to do about an error that only a person can mend, unless that is added
// already: the first call knows best which node it is about.
func explain(err error, node string) error {
	switch {
	case err == nil:
		return nil
	case errors.As(err, new(explained)):
		return err
	case errors.Is(err, zk.ErrNoAuth):
		return explained{fmt.Errorf("no right to what the store needs at %s: give this identity the rights cdrwa there: %w", node, err)}
	case errors.Is(err, zk.ErrInvalidACL):
		return explained{fmt.Errorf("the server refuses the ACL for %s: is the connection authenticated, and are the readers written as scheme and ID? %w", node, err)}
	case errors.Is(err, zk.ErrAuthFailed):
		return explained{fmt.Errorf("the server does not accept the identity: %w", err)}
	}
	return err
}

// plain returns err without what package net writes around the cause of a connection that was not
// made.
func plain(err error) error {
	if dial, ok := errors.AsType[*net.OpError](err); ok {
		if before, ok := strings.CutSuffix(err.Error(), dial.Error()); ok {
			return fmt.Errorf("%s%w", before, store.Cause(dial))
		}
	}
	return err
}

// refusedAt returns the node whose rights do not allow a transaction, or node if the answers do
// not show that.
func refusedAt(ops []zk.Request, answers []zk.Answer, node string) string {
	i := slices.IndexFunc(answers, func(a zk.Answer) bool { return errors.Is(a.Err, zk.ErrNoAuth) })
	switch {
	case i < 0:
		return node
	case ops[i].Sets():
		return ops[i].Path
	}
	return path.Dir(ops[i].Path)
}
