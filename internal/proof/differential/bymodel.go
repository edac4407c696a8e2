package differential

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/proof/modelnode"
)

// byModel answers for one lock as the model of a node does.
type byModel struct {
	rules modelnode.Rules
	lock  modelnode.Lock[string]
}

// do executes c. A floor is the least token that a grant can draw, in place of the
// node's clock and the proposal.
func (m *byModel) do(c Command, floor *uint64, now clock.Instant) Answer {
	owner := c.Owner.ID
	var ans modelnode.Answer[string]
	switch c.Op {
	case Acquire:
		rules, ask := m.rules, modelnode.Ask[string]{Owner: owner, TTL: c.TTL, Propose: c.Token}
		if floor != nil {
			rules.NoClock, ask.Propose = true, *floor
		}
		m.lock, ans = m.lock.Acquire(rules, ask, now)
	case Confirm:
		m.lock, ans = m.lock.Confirm(m.rules, owner, c.Token, now)
	case Extend:
		m.lock, ans = m.lock.Extend(m.rules, owner, c.TTL, now)
	case Release:
		m.lock, ans = m.lock.Release(m.rules, modelnode.Ending[string]{Owner: owner}, now)
	case Bury:
		m.lock, ans = m.lock.Release(m.rules, modelnode.Ending[string]{Owner: owner, Tombstone: c.TTL}, now)
	case BuryRenewed:
		m.lock, ans = m.lock.Release(m.rules, modelnode.Ending[string]{Owner: owner, Tombstone: c.TTL, Renewed: true}, now)
	case Heal:
		m.lock, ans = m.lock.Heal(m.rules, owner, c.TTL, now)
	case StrangerSets:
		if _, _, held := m.lock.Holder(now); held {
			return Answer{Verdict: Taken}
		}
		m.lock.Owner, m.lock.Expiry = Stranger, expiry(c.TTL, now)
	case StrangerDeletes:
		m.lock.Owner, m.lock.Expiry = "", 0
	case LoseCounter:
		m.lock.Counter, m.lock.CounterExpiry = 0, 0
	case LoseAll:
		m.lock = m.lock.Crash(false, 0, now)
	}
	switch ans.Verdict {
	case modelnode.Buried:
		return Answer{Verdict: Buried}
	case modelnode.Taken:
		if ans.Holder == "" {
			return Answer{Verdict: Nobody}
		}
		return Answer{Verdict: Taken, Holder: ans.Holder, Left: left(m.lock.Expiry, now)}
	}
	return Answer{Verdict: Done, Token: ans.Token}
}

// state returns the model's state of the lock.
func (m *byModel) state(now clock.Instant) State {
	s := State{Token: m.lock.Token(now), Tombstones: map[string]time.Duration{}}
	if o, _, held := m.lock.Holder(now); held {
		s.Holder, s.Left = o, left(m.lock.Expiry, now)
	}
	if s.Token != 0 {
		s.TokenLeft = left(m.lock.CounterExpiry, now)
	}
	for _, t := range m.lock.Tombstones {
		if now < t.Expiry {
			s.Tombstones[t.Owner] = left(t.Expiry, now)
		}
	}
	return s
}

// floorAt returns the least token that a node with the clock now draws if propose is
// proposed.
func floorAt(now clock.Instant, propose uint64) uint64 {
	_, ans := modelnode.Lock[string]{}.Acquire(modelnode.Shipped(), modelnode.Ask[string]{Owner: "x", TTL: 1, Propose: propose}, now)
	return ans.Token
}
