package filestore

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold-dev/leasehold/store"
)

// write runs fn in a writing transaction, and repeats it while other transactions
// are in the way. maybe is set if it failed but may have taken effect.
func (s *Store) write(ctx context.Context, fn func(*step) error) (maybe bool, err error) {
	return s.writeIn(ctx, []quota{s.writers}, passage{t: s.turnstile}, fn)
}

// ask is write for a request that asks for a lock. At most one such request of the
// process competes with its releases and renewals: behind fifty of them, a release on
// a slow machine would reach its time limit.
func (s *Store) ask(ctx context.Context, fn func(*step) error) (maybe bool, err error) {
	return s.writeIn(ctx, []quota{s.askers, s.writers}, passage{t: s.turnstile, polite: true}, fn)
}

func (s *Store) writeIn(ctx context.Context, all []quota, pass passage, fn func(*step) error) (maybe bool, err error) {
	defer pass.leave()
	return s.run(ctx, all, func(ctx context.Context) (maybe bool, err error) {
		pass.try(ctx)
		maybe, err = s.once(ctx, false, fn)
		if used := (tokensUsedUpError{}); errors.As(err, &used) {
			if err := s.moreTokens(ctx, used.need); err != nil {
				return false, err
			}
			return s.once(ctx, false, fn)
		}
		return maybe, err
	})
}

// read runs fn in a read-only transaction.
func (s *Store) read(ctx context.Context, fn func(*step) error) error {
	_, err := s.run(ctx, []quota{s.readers}, func(ctx context.Context) (bool, error) {
		return s.once(ctx, true, fn)
	})
	return err
}

// failed turns err into the error that the caller of a method gets.
func (s *Store) failed(ctx context.Context, op, name string, maybe bool, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		if name == "" {
			return fmt.Errorf("%s in %s: %w", op, s.node, err)
		}
		return fmt.Errorf("%s %q in %s: %w", op, name, s.node, err)
	}
	n := store.NodeOutcome{Node: s.node, Outcome: store.TimedOut}
	var over *endedError
	switch {
	case errors.As(err, &over) && over.last != nil:
		_, why := s.d.explain(over.last)
		n.Err = fmt.Errorf("no success within %v: %w", s.limit, why)
	case errors.As(err, &over):
		n.Err = fmt.Errorf("not begun within %v: this process has too many pending requests", s.limit)
	default:
		n.Outcome, n.Err = s.d.explain(err)
	}
	if maybe && n.Outcome == store.Refused {
		n.Outcome = store.Unreachable // the outcome for errors that leave the result unknown
	}
	return &store.QuorumError{Op: op, Name: name, Need: 1, Nodes: []store.NodeOutcome{n}}
}
