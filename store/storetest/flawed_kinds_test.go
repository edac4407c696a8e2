package storetest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/audience"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
)

// manifold is a store in memory that keeps every kind of lock, by the rule, and has one flaw
// on request. Its waiters poll.
type manifold struct {
	store.Engine // nil: the suite calls nothing else
	*shelf
	flaw flaw
}

// shelf holds the locks that the handles of a manifold share.
type shelf struct {
	told    audience.Audience
	mu      sync.Mutex
	records map[string]rule.Record
}

func newShelf() *shelf { return &shelf{records: make(map[string]rule.Record)} }

func (s *manifold) is(f flaw) bool { return s.flaw == f }

// step applies f to a lock, after ending expired leases, and then hands the lock on.
func (s *manifold) step(name string, f func(r rule.Record, now clock.Instant) (rule.Record, rule.Answer)) rule.Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := clock.System().Now()
	before := s.records[name]
	r := rule.Expire(before, now)
	if s.is("a dead holder frees all") && len(r.Holds) < len(before.Holds) {
		r.Holds = nil
	}
	if s.is("an expired lease frees one permit") {
		for _, h := range before.Holds {
			if h.Weight > 1 && h.Expiry <= now {
				h.Weight--
				h.Expiry = now.Add(time.Hour)
				r.Spec, r.Holds = before.Spec, append(slices.Clone(r.Holds), h)
			}
		}
	}
	r, _ = rule.Advance(r, 0, now)
	r, ans := f(r, now)
	r, _ = rule.Advance(r, 0, now)
	s.records[name] = r
	return ans
}

// admit asks for the lock, and takes a place in the queue for wait if that is positive.
func (s *manifold) admit(l store.Lease, wait time.Duration) (store.Grant, error) {
	if err := l.Check(s.Caps()); err != nil {
		return store.Grant{}, err
	}
	ask := rule.Ask{Spec: rule.Spec(l.Kind.Normal()), Owner: l.Owner, Meta: l.Meta, Weight: l.Weight, TTL: l.TTL, Fair: !s.is("later requests barge"), Wait: wait}
	if s.is("weights do not count") {
		ask.Weight = 1
	}
	ans := s.step(l.Name, func(r rule.Record, now clock.Instant) (rule.Record, rule.Answer) {
		if s.is("a broken lease is granted again") {
			r.Holds = slices.Clone(r.Holds)
			for i := range r.Holds {
				r.Holds[i].Broken = r.Holds[i].Broken && r.Holds[i].Owner != ask.Owner
			}
		}
		if s.is("kinds are mixed") {
			r.Spec = ask.Spec
		}
		if s.is("the limit is not kept") {
			one := rule.Record{Spec: ask.Spec, Token: r.Token}
			one, ans := rule.Admit(one, ask, now)
			one.Holds[0].Slot = int64(len(r.Holds))
			ans.Slot = one.Holds[0].Slot
			r.Spec, r.Token, r.Holds = ask.Spec, one.Token, append(slices.Clone(r.Holds), one.Holds...)
			return r, ans
		}
		return rule.Admit(r, ask, now)
	})
	holder := store.DecodeHolder(ans.Blocker.Owner, ans.Blocker.Meta)
	switch ans.Verdict {
	case rule.Granted:
		g := store.Grant{Token: ans.Token, Slot: ans.Slot}
		switch {
		case s.is("slots repeat"):
			g.Slot = 0
		case s.is("tokens repeat"):
			g.Token = 7
		case s.is("readers have the writer's token") && l.SharesToken():
			g.Token = max(1, g.Token-1)
		case s.is("readers have tokens of their own") && l.SharesToken():
			g.Token += fence.Token(g.Slot)
		}
		return g, nil
	case rule.Buried:
		return store.Grant{}, store.ErrNotHeld
	case rule.Mismatch:
		if s.is("kinds are not named") {
			return store.Grant{}, store.ErrKindMismatch
		}
		return store.Grant{}, &store.KindError{Name: l.Name, Asked: l.Kind, InUse: store.Kind(ans.Spec), Holder: holder}
	}
	holder.Waiting = ans.Blocker.Waiting && !s.is("waiters are taken for holders") || s.is("holders are taken for waiters")
	return store.Grant{}, &store.BusyError{Name: l.Name, Holder: holder, ExpiresIn: ans.ExpiresIn, Position: ans.Position}
}

func (s *manifold) Acquire(_ context.Context, r store.AcquireRequest) (store.Grant, error) {
	return s.admit(r.Lease, 0)
}

func (s *manifold) Wait(ctx context.Context, r store.WaitRequest, reason func(error)) (store.Grant, error) {
	start := clock.System().Now()
	for first := true; ; first = false {
		sent := clock.System().Now()
		g, err := s.admit(r.Lease, r.TTL)
		if g.Since = sent.Sub(start); !refused(err) {
			return g, err
		}
		if first && reason != nil {
			reason(err)
		}
		select {
		case <-ctx.Done():
			s.Release(ctx, store.ReleaseRequest{Lease: r.Lease})
			return store.Grant{}, ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

func (s *manifold) Renew(_ context.Context, leases []store.Lease) []error {
	errs := make([]error, len(leases))
	renewed := map[string]bool{}
	for i, l := range leases {
		if renewed[l.Name] && s.is("a batch renews one lease of a lock") {
			continue
		}
		renewed[l.Name] = true
		if s.step(l.Name, func(r rule.Record, now clock.Instant) (rule.Record, rule.Answer) {
			return rule.Renew(r, l.Owner, l.TTL, now)
		}).Verdict != rule.Done {
			errs[i] = store.ErrNotHeld
		}
	}
	return errs
}

func (s *manifold) Release(_ context.Context, l store.ReleaseRequest) error {
	ans := s.step(l.Name, func(r rule.Record, now clock.Instant) (rule.Record, rule.Answer) {
		if s.is("a release ends all leases") {
			for _, h := range r.Holds {
				if h.Owner != l.Owner {
					r, _ = rule.Release(r, rule.End{Owner: h.Owner}, now)
				}
			}
		}
		return rule.Release(r, rule.End{Owner: l.Owner}, now)
	})
	if ans.Verdict != rule.Done {
		return store.ErrNotHeld
	}
	return nil
}

func (s *manifold) NotifyBroken(f func(owner string)) (stop func()) { return s.told.Add(f) }

func (s *manifold) BreakLease(_ context.Context, b store.BreakRequest) (time.Duration, error) {
	if s.is("long notes are cut") {
		b.Reason = b.Reason[:min(len(b.Reason), 256)]
	}
	ans := s.step(b.Name, func(r rule.Record, now clock.Instant) (rule.Record, rule.Answer) {
		before := r
		if s.is("any token will do") && len(r.Holds) > 0 {
			b.Owner, b.Token = r.Holds[0].Owner, r.Holds[0].Token
		}
		r, ans := rule.BreakLease(r, rule.Break{Owner: b.Owner, Token: b.Token, Now: b.Now || s.is("every break is at once"), Note: b.Note(), Keep: time.Hour}, now)
		switch {
		case s.is("broken leases are renewed"):
			r.Holds = before.Holds
		case s.is("tokens start again after a break") && b.Now && len(r.Holds)+len(r.Queue) == 0:
			r.Token = 0
		case s.is("broken leases come back"):
			r.Tombstones = nil
		case s.is("a break ends all leases"):
			r.Holds = slices.DeleteFunc(slices.Clone(r.Holds), func(h rule.Hold) bool { return h.Owner != b.Owner })
		case s.is("breaks are not noted"):
			r.Broken.Note = ""
		case s.is("the last note is shown") && ans.Verdict == rule.Done:
			r.Broken.Note = b.Note()
		case s.is("broken leases last") && len(r.Holds) > 0:
			r.Holds = slices.Clone(r.Holds)
			r.Holds[0].Expiry = now.Add(time.Hour)
		case s.is("breaks of nothing succeed"):
			ans.Verdict = rule.Done
		}
		return r, ans
	})
	if ans.Verdict != rule.Done {
		return 0, store.ErrNotHeld
	}
	if !s.is("breaks are not told of") {
		s.told.Tell(b.Owner)
	}
	return ans.ExpiresIn, nil
}

func (s *manifold) Downgrade(_ context.Context, r store.Lease) (store.Grant, error) {
	ans := s.step(r.Name, func(rec rule.Record, now clock.Instant) (rule.Record, rule.Answer) {
		if s.is("a downgrade lets a writer in between") {
			rec, _ = rule.Release(rec, rule.End{Owner: r.Owner}, now)
			rec.Queue = slices.Clone(rec.Queue)
			slices.Reverse(rec.Queue)
			rec, _ = rule.Advance(rec, 0, now)
		}
		if s.is("a downgrade renews a broken lease") {
			rec.Holds = slices.Clone(rec.Holds)
			for i := range rec.Holds {
				rec.Holds[i].Broken = false
			}
		}
		rec, ans := rule.Downgrade(rec, r.Owner, r.TTL, 0, now)
		if s.is("a downgrade keeps the token") && ans.Verdict == rule.Granted && !ans.Again {
			ans.Token--
		}
		return rec, ans
	})
	if ans.Verdict != rule.Granted {
		return store.Grant{}, store.ErrNotHeld
	}
	return store.Grant{Token: ans.Token, Slot: ans.Slot}, nil
}

func (s *manifold) Resize(_ context.Context, name string, from, to store.Kind) error {
	ans := s.step(name, func(r rule.Record, now clock.Instant) (rule.Record, rule.Answer) {
		next, ans := rule.Resize(r, rule.Spec(from.Normal()), rule.Spec(to.Normal()), now)
		switch {
		case s.is("a resize ends leases"):
			next.Holds = next.Holds[:min(len(next.Holds), int(to.Limit))]
		case s.is("a resize does nothing"):
			next = r
		case s.is("a resize from any number") && len(r.Holds) > 0:
			next.Spec, ans.Verdict = rule.Spec(to.Normal()), rule.Done
		}
		return next, ans
	})
	if ans.Verdict != rule.Done {
		return &store.KindError{Name: name, Asked: from, InUse: store.Kind(ans.Spec)}
	}
	return nil
}

func (s *manifold) Inspect(_ context.Context, name string) (st store.State, err error) {
	st.Name = name
	s.step(name, func(r rule.Record, now clock.Instant) (rule.Record, rule.Answer) {
		for _, h := range r.Holds {
			st.Kind, st.Held = store.Kind(r.Spec), true
			st.Holders = append(st.Holders, store.Holding{Holder: store.DecodeHolder(h.Owner, h.Meta), Token: h.Token, ExpiresIn: h.Expiry.Sub(now), Weight: h.Weight, Slot: h.Slot})
		}
		for _, p := range r.Queue {
			st.Queue = append(st.Queue, store.Place{Holder: store.DecodeHolder(p.Owner, p.Meta), ExpiresIn: p.Expiry.Sub(now)})
		}
		return r, rule.Answer{}
	})
	s.mu.Lock()
	if b := s.records[name].Broken; b != nil {
		st.Broken = store.DecodeBroken(b.Owner, b.Token, b.Note)
	}
	s.mu.Unlock()
	if st.Held {
		h := st.Holders[0]
		st.Holder, st.Token, st.ExpiresIn = h.Holder, h.Token, h.ExpiresIn
	}
	if s.is("one holder is shown") {
		st.Holders = slices.Clip(st.Holders)[:min(1, len(st.Holders))]
	}
	if st.Kind.IsMutex() {
		st.Kind = store.Kind{}
		if len(st.Holders) == 1 || s.is("one holder of a mutex is shown") {
			st.Holders = nil
		}
	}
	return st, nil
}

func (s *manifold) List(context.Context, string) ([]store.State, error) { return nil, nil }

func (s *manifold) Caps() store.Caps {
	return store.Caps{Engine: "manifold", Nodes: 1, Quorum: 1, Reach: "process", Clock: "this process's own clock", Notifies: true}
}

func (s *manifold) Close() error { return nil }
