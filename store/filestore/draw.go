package filestore

import (
	"context"
	"fmt"

	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
)

// Draw implements store.Waiter.
func (s *Store) Draw(ctx context.Context, r store.Request) (store.Drawn, error) {
	if err := r.Check(s.maxTTL); err != nil {
		return store.Drawn{}, err
	}
	if err := s.gate.enter(); err != nil {
		return store.Drawn{}, err
	}
	defer s.gate.leave()
	var d store.Drawn
	held := false
	maybe, err := s.write(ctx, func(t *step) (err error) {
		d, held, err = t.drawFor(r)
		return err
	})
	switch {
	case err != nil:
		return store.Drawn{}, s.failed(ctx, "draw tokens for", r.Name, maybe, err)
	case !held:
		return store.Drawn{}, fmt.Errorf("draw tokens for %q in %s: %w", r.Name, s.node, store.ErrNotHeld)
	}
	return d, nil
}

// drawFor draws tokens for the lease of r. held is false if there is none.
func (t *step) drawFor(r store.Request) (d store.Drawn, held bool, err error) {
	before, err := t.read(r.Name)
	if err != nil {
		return store.Drawn{}, false, err
	}
	after, ans := rule.Draw(before.Record, r.Owner, r.Spare, 0, t.now)
	if ans.Verdict != rule.Done {
		return store.Drawn{}, false, nil
	}
	floor, spare, err := t.draw(r.Spare)
	if err != nil {
		return store.Drawn{}, false, err
	}
	after, ans = rule.Draw(before.Record, r.Owner, spare, floor, t.now)
	return store.Drawn{Token: ans.Token, Spare: ans.Spare, Waiting: len(after.Line) > 0}, true, t.write(r.Name, before.with(after))
}
