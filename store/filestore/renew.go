package filestore

import (
	"context"

	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
)

// Renew implements store.Store. All leases are renewed in one transaction.
func (s *Store) Renew(ctx context.Context, leases []store.Lease) []error {
	errs := make([]error, len(leases))
	all := func(err error) []error {
		for i := range errs {
			if errs[i] == nil || errs[i] == store.ErrNotHeld {
				errs[i] = err
			}
		}
		return errs
	}
	if err := s.gate.Enter(nil); err != nil {
		return all(err)
	}
	defer s.gate.Leave()
	var good []int
	caps := s.Caps()
	for i, r := range leases {
		if errs[i] = r.Check(caps); errs[i] == nil {
			good = append(good, i)
		}
	}
	if len(good) == 0 {
		return errs
	}
	maybe, err := s.write(ctx, func(t *step) error {
		for _, i := range good {
			ans, err := t.renew(leases[i])
			if err != nil {
				return err
			}
			errs[i] = nil // also of a run before this one
			if ans.Verdict != rule.Done {
				errs[i] = store.ErrNotHeld
			}
		}
		return nil
	})
	if err != nil {
		name := ""
		if len(leases) == 1 {
			name = leases[0].Name
		}
		return all(s.failed(ctx, "renew", name, maybe, err))
	}
	s.keepListening()
	return errs
}

func (t *step) renew(r store.Lease) (rule.Answer, error) {
	before, err := t.read(r.Name)
	if err != nil {
		return rule.Answer{}, err
	}
	after, ans := rule.Renew(before.Record, r.Owner, t.lasting(r.TTL), t.now)
	if ans.Verdict != rule.Done {
		return ans, nil
	}
	return ans, t.write(r.Name, before.with(after))
}
