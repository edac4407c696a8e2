package filestore

import (
	"context"
	"fmt"

	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
)

var _ store.Changer = (*Store)(nil)

// Downgrade implements store.Changer. The lock is handed to the readers that wait in the
// same transaction.
func (s *Store) Downgrade(ctx context.Context, r store.Lease) (store.Grant, error) {
	if err := s.gate.Enter(r.CheckDowngrade(s.Caps())); err != nil {
		return store.Grant{}, err
	}
	defer s.gate.Leave()
	var ans rule.Answer
	maybe, err := s.write(ctx, func(t *step) (err error) {
		ans, err = t.downgrade(r)
		return err
	})
	switch {
	case err != nil:
		return store.Grant{}, s.failed(ctx, "downgrade", r.Name, maybe, err)
	case ans.Verdict != rule.Granted:
		return store.Grant{}, fmt.Errorf("downgrade %q in %s: %w", r.Name, s.node, store.ErrNotHeld)
	}
	return store.Grant{Token: ans.Token, Slot: ans.Slot}, nil
}

// downgrade draws a token only if the owner is the writer.
func (t *step) downgrade(r store.Lease) (rule.Answer, error) {
	before, err := t.read(r.Name)
	if err != nil {
		return rule.Answer{}, err
	}
	after, ans := rule.Downgrade(before.Record, r.Owner, t.lasting(r.TTL), 0, t.now)
	switch {
	case ans.Verdict != rule.Granted:
		return ans, nil
	case ans.Again:
		return ans, t.write(r.Name, before.with(after))
	}
	floor, err := t.draw(1)
	if err != nil {
		return rule.Answer{}, err
	}
	after, ans = rule.Downgrade(before.Record, r.Owner, t.lasting(r.TTL), floor, t.now)
	next, _, err := t.advance(r.Name, before.with(after))
	if err != nil {
		return rule.Answer{}, err
	}
	return ans, t.write(r.Name, next)
}

// Resize implements store.Changer.
func (s *Store) Resize(ctx context.Context, name string, from, to store.Kind) error {
	if err := s.gate.Enter(store.CheckResize(name, from, to, s.Caps())); err != nil {
		return err
	}
	defer s.gate.Leave()
	var ans rule.Answer
	maybe, err := s.write(ctx, func(t *step) (err error) {
		before, err := t.read(name)
		if err != nil {
			return err
		}
		var after rule.Record
		after, ans = rule.Resize(before.Record, rule.Spec(from.Normal()), rule.Spec(to.Normal()), t.now)
		if ans.Verdict != rule.Done || after.Spec == before.Spec {
			return nil
		}
		return t.write(name, before.with(after))
	})
	switch {
	case err != nil:
		return s.failed(ctx, "resize", name, maybe, err)
	case ans.Verdict != rule.Done:
		return refusal("resize", store.Lease{Name: name, Kind: from}, ans)
	}
	return nil
}
