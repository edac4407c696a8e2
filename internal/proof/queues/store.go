package queues

import (
	"slices"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/proof/modelnode"
)

// store is the lock in the store. Its tokens count from 1.
type store struct{ *state }

var rules = modelnode.Rules{NoClock: true}

func (s store) try(o owner) (granted bool) {
	return s.acquire(modelnode.Ask[owner]{Owner: o, TTL: ttl})
}

func (s store) wait(o owner, rank uint64) (granted bool) {
	return s.acquire(modelnode.Ask[owner]{Owner: o, TTL: ttl, Wait: true, Ticket: rank})
}

func (s store) acquire(ask modelnode.Ask[owner]) bool {
	after, a := s.lock.Acquire(rules, ask, now)
	if s.lock = after; a.Verdict != modelnode.Done {
		return false
	}
	s.grant(ask.Owner, a.Token)
	return true
}

// grant records a grant.
func (s store) grant(o owner, token uint64) {
	s.grants = append(s.grants, grant{owner: o, token: fence.Token(token)})
}

// granted reports whether o has the lock, and its client does not know it yet.
func (s store) granted(o owner) bool {
	return slices.ContainsFunc(s.grants, func(g grant) bool { return g.owner == o })
}

// delivered returns that grant and forgets it: its client knows it from now on.
func (s store) delivered(o owner) grant {
	i := slices.IndexFunc(s.grants, func(g grant) bool { return g.owner == o })
	g := s.grants[i]
	s.grants = slices.Delete(s.grants, i, i+1)
	return g
}

func (s store) waiting() bool { return s.lock.Waiting(now) > 0 }

func (s store) release(o owner) {
	after, a := s.lock.Release(rules, modelnode.Ending[owner]{Owner: o}, now)
	s.lock = after
	s.gone(o, a)
}

// rejoin releases o, and reports whether next got a place.
func (s store) rejoin(o, next owner, rank uint64) (standing bool) {
	after, ended, placed := s.lock.Return(rules, modelnode.Ending[owner]{Owner: o}, modelnode.Ask[owner]{Owner: next, TTL: ttl, Ticket: rank, Behind: true}, now)
	s.lock = after
	s.gone(o, ended)
	return placed.Position > 0
}

// gone forgets the grants of o, and notes those that followed from its release.
func (s store) gone(o owner, a modelnode.Answer[owner]) {
	s.grants = slices.DeleteFunc(s.grants, func(g grant) bool { return g.owner == o })
	for _, to := range a.Pushes {
		s.grant(to.Owner, to.Token)
	}
}
