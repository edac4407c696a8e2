package recordstore

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
)

// change carries out a step that changes a lock in use, unless its answer is a refusal.
func (s *engine) change(ctx context.Context, request, name string, step func(*txn) (rule.Record, rule.Answer)) (rule.Answer, error) {
	var ans rule.Answer // a step whose context has ended may still set it
	maybe, err := s.register(name).do(ctx, func(t *txn) {
		var after rule.Record
		if after, ans = step(t); ans.Verdict == rule.Done || ans.Verdict == rule.Granted {
			t.set(after)
			t.advance()
		}
	})
	if err != nil {
		return rule.Answer{}, s.failed(request, name, maybe, err)
	}
	return ans, nil
}

// Downgrade implements driver.Engine.
func (s *engine) Downgrade(ctx context.Context, r store.Lease) (store.Grant, error) {
	ans, err := s.change(ctx, "downgrade", r.Name, func(t *txn) (rule.Record, rule.Answer) {
		t.touch(r.Owner)
		return rule.Downgrade(t.rec, r.Owner, r.TTL, t.floor, t.now)
	})
	if err == nil && ans.Verdict != rule.Granted {
		err = refusal("downgrade", r, ans)
	}
	return store.Grant{Token: ans.Token, Slot: ans.Slot}, err
}

// Resize implements driver.Engine.
func (s *engine) Resize(ctx context.Context, name string, from, to store.Kind) error {
	ans, err := s.change(ctx, "resize", name, func(t *txn) (rule.Record, rule.Answer) {
		return rule.Resize(t.rec, rule.Spec(from.Normal()), rule.Spec(to.Normal()), t.now)
	})
	if err == nil && ans.Verdict != rule.Done {
		err = refusal("resize", store.Lease{Name: name, Kind: from}, ans)
	}
	return err
}

// BreakLease implements driver.Engine.
func (s *engine) BreakLease(ctx context.Context, r store.BreakRequest) (left time.Duration, err error) {
	other := false // the lease is that of another kind of client
	ans, err := s.change(ctx, "break the lease of", r.Name, func(t *txn) (rule.Record, rule.Answer) {
		if other = t.snap.other != ""; other {
			return t.rec, rule.Answer{Verdict: rule.NotHeld}
		}
		return rule.BreakLease(t.rec, rule.Break{Owner: r.Owner, Token: r.Token, Now: r.Now, Note: r.Note(), Keep: store.KeepBroken}, t.now)
	})
	switch {
	case err != nil:
	case other:
		err = store.UnbreakableError(r.Name)
	case ans.Verdict != rule.Done:
		err = fmt.Errorf("break the lease of %q: %w", r.Name, store.ErrNotHeld)
	}
	return ans.ExpiresIn, err
}

// NotifyBroken implements driver.Engine.
func (s *engine) NotifyBroken(func(owner string)) (stop func()) { return func() {} }
