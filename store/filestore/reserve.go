package filestore

import (
	"context"
	"fmt"

	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
)

// ReserveTokens implements store.Waiter.
func (s *Store) ReserveTokens(ctx context.Context, r store.ReserveRequest) (store.Reserved, error) {
	if err := s.gate.Enter(r.Check(s.Caps())); err != nil {
		return store.Reserved{}, err
	}
	defer s.gate.Leave()
	var d store.Reserved
	held := false
	maybe, err := s.write(ctx, func(t *step) (err error) {
		d, held, err = t.reserveFor(r)
		return err
	})
	switch {
	case err != nil:
		return store.Reserved{}, s.failed(ctx, "reserve tokens for", r.Name, maybe, err)
	case !held:
		return store.Reserved{}, fmt.Errorf("reserve tokens for %q in %s: %w", r.Name, s.node, store.ErrNotHeld)
	}
	return d, nil
}

// reserveFor reserves tokens for the lease of r. held is false if there is none.
func (t *step) reserveFor(r store.ReserveRequest) (d store.Reserved, held bool, err error) {
	before, err := t.read(r.Name)
	if err != nil {
		return store.Reserved{}, false, err
	}
	after, ans := rule.ReserveTokens(before.Record, r.Owner, r.Count-1, 0, t.now)
	if ans.Verdict != rule.Done {
		return store.Reserved{}, false, nil
	}
	floor, spare, err := t.draw(r.Count - 1)
	if err != nil {
		return store.Reserved{}, false, err
	}
	after, ans = rule.ReserveTokens(before.Record, r.Owner, spare, floor, t.now)
	return store.Reserved{Token: ans.Token, Count: ans.Spare + 1, Waiting: len(after.Queue) > 0}, true, t.write(r.Name, before.with(after))
}
