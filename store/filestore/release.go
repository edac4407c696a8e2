package filestore

import (
	"cmp"
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
)

// Release implements store.Store. It leaves no tombstone, because no acquire of
// the owner can still be pending. The lock is handed to the first waiter in the
// same transaction.
func (s *Store) Release(ctx context.Context, r store.ReleaseRequest) error {
	if err := s.gate.Enter(cmp.Or(store.CheckName(r.Name), store.CheckOwner(r.Owner))); err != nil {
		return err
	}
	defer s.gate.Leave()
	if p, ok := s.rejoined.Take(r.Lease); ok {
		p.abandon(ctx, s)
		return store.ErrNotHeld
	}
	var ans rule.Answer
	maybe, err := s.write(ctx, func(t *step) (err error) {
		ans, err = t.release(r, 0, nil)
		return err
	})
	switch {
	case err != nil:
		return s.failed(ctx, "release", r.Name, maybe, err)
	case ans.Verdict != rule.Done:
		return store.ErrNotHeld
	}
	return nil
}

// release ends the lease of r and hands the lock on. If then is not nil, it may change what is
// written, unless there was no such lease.
func (t *step) release(r store.ReleaseRequest, tombstone time.Duration, then func(row) row) (rule.Answer, error) {
	before, err := t.read(r.Name)
	if err != nil {
		return rule.Answer{}, err
	}
	after, ans := rule.Release(before.Record, rule.End{Owner: r.Owner, Attempt: r.Attempt, Undo: r.Undo, Tombstone: tombstone}, t.now)
	if ans.Verdict != rule.Done && tombstone == 0 && len(after.Queue) == len(before.Queue) {
		return ans, nil
	}
	next, _, err := t.advance(r.Name, before.with(after))
	if err != nil {
		return rule.Answer{}, err
	}
	if then != nil && ans.Verdict == rule.Done {
		next = then(next)
	}
	return ans, t.write(r.Name, next)
}
