package zkstore

import (
	"errors"
	"fmt"
	"net"
	"path"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold-dev/leasehold/store"
)

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
func refusedAt(ops []any, answers []zk.MultiResponse, node string) string {
	for i, a := range answers[:min(len(answers), len(ops))] {
		if !errors.Is(a.Error, zk.ErrNoAuth) {
			continue
		}
		switch op := ops[i].(type) {
		case *zk.SetDataRequest:
			return op.Path
		case *zk.CreateRequest:
			return path.Dir(op.Path)
		case *zk.DeleteRequest:
			return path.Dir(op.Path)
		}
	}
	return node
}
