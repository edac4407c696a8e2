package filestore

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
)

var _ store.Breaker = (*Store)(nil)

// BreakLease implements store.Breaker.
func (s *Store) BreakLease(ctx context.Context, r store.BreakRequest) (left time.Duration, err error) {
	if err := s.gate.Enter(r.Check()); err != nil {
		return 0, err
	}
	defer s.gate.Leave()
	var ans rule.Answer
	maybe, err := s.write(ctx, func(t *step) error {
		before, err := t.read(r.Name)
		if err != nil {
			return err
		}
		var after rule.Record
		after, ans = rule.BreakLease(before.Record, rule.Break{Owner: r.Owner, Token: r.Token, Now: r.Now, Note: r.Note(), Keep: store.KeepBroken}, t.now)
		if ans.Verdict != rule.Done {
			return nil
		}
		next, _, err := t.advance(r.Name, before.with(after))
		if err != nil {
			return err
		}
		return t.write(r.Name, next)
	})
	switch {
	case err != nil:
		return 0, s.failed(ctx, "break the lease of", r.Name, maybe, err)
	case ans.Verdict != rule.Done:
		return 0, store.ErrNotHeld
	}
	return ans.ExpiresIn, nil
}
