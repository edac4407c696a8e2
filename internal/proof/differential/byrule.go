package differential

import (
	"math"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/proof/modelnode"
	"github.com/leasehold-dev/leasehold/internal/rule"
)

// byRule answers for one lock as the rule does. The rule has one record, but a node has
// keys that expire independently. So a few differences are bridged here:
//
//   - A node's counter is forgotten some time after the last grant, and can be
//     lost. The record's token is then set back to zero, and so is the token
//     of the lease, if there is one. An owner whose lease has lost its token is
//     granted it anew: as if it had released it before it asked.
//   - If an owner is buried and the lock is taken, the rule answers with the
//     first, a node with the second. Both refuse.
//   - The rule has no step that confirms a token, because a single server needs
//     none. A Confirm raises the token of the record and of the lease.
//   - Other programs change a lock behind the rule's back. Theirs is a lease
//     without a token.
type byRule struct {
	traits Traits
	record rule.Record
	// forget is when the counter is forgotten; zero: never.
	forget clock.Instant
	// fresh reports whether the last command made a new lease.
	fresh bool
}

// counterLife is how long nodes keep counters, and counterStep when a grant lets them live
// longer.
var counterLife, counterStep = modelnode.Shipped().CounterLife, modelnode.Shipped().CounterStep

// do executes c. floor is the least token that a grant can draw.
func (b *byRule) do(c Command, floor uint64, now clock.Instant) Answer {
	b.expire(now)
	b.fresh = false
	owner := c.Owner.ID
	switch c.Op {
	case Acquire:
		return b.acquire(c, floor, now)
	case Confirm:
		return b.confirm(owner, c.Token, now)
	case Extend:
		record, ans := rule.Renew(b.record, owner, c.TTL, now)
		b.record = record
		if ans.Verdict == rule.Done && b.record.Token > 0 {
			b.counted(now)
		}
		return b.verdict(ans, now)
	case Release, Bury:
		tombstone := time.Duration(0)
		if c.Op == Bury {
			tombstone = c.TTL
		}
		record, ans := rule.Release(b.record, rule.End{Owner: owner, Tombstone: tombstone}, now)
		b.record = record
		return b.verdict(ans, now)
	case BuryRenewed:
		record, ans := rule.Release(b.record, rule.End{Owner: owner}, now)
		b.record, _ = rule.Release(record, rule.End{Owner: owner, Tombstone: c.TTL}, now)
		return b.verdict(ans, now)
	case Heal:
		return b.heal(c, now)
	case StrangerSets:
		if len(b.record.Holds) > 0 {
			return Answer{Verdict: Taken}
		}
		b.record.Holds = []rule.Hold{{Owner: Stranger, Weight: 1, Count: 1, Expiry: expiry(c.TTL, now)}}
	case StrangerDeletes:
		b.record.Holds = nil
	case LoseCounter:
		b.loseCounter()
	case LoseAll:
		b.record, b.forget = rule.Record{}, 0
	}
	return Answer{Verdict: Done}
}

func (b *byRule) acquire(c Command, floor uint64, now clock.Instant) Answer {
	owner := c.Owner.ID
	if h := b.holder(); h != nil && h.Owner == owner && h.Token == 0 {
		b.record, _ = rule.Release(b.record, rule.End{Owner: owner}, now)
	}
	last := uint64(b.record.Token)
	ask := rule.Ask{Spec: rule.Mutex, Owner: owner, Meta: c.Owner.Meta, TTL: c.TTL, Floor: fence.Token(floor)}
	record, ans := rule.Admit(b.record, ask, now)
	b.record = record
	switch {
	case ans.Verdict == rule.Granted:
		// A token that is not the next one after the counter may leave its end as it is.
		token := uint64(ans.Token)
		keeps := last != 0 && last+1 < token && last >= token-token%uint64(counterStep.Microseconds())
		if b.fresh = !ans.Again; b.fresh && !keeps {
			b.counted(now)
		}
		return Answer{Verdict: Done, Token: uint64(ans.Token)}
	case ans.Verdict == rule.Buried && (!b.traits.Node || b.holder() == nil):
		return Answer{Verdict: Buried}
	}
	return b.taken(now)
}

// heal gives the owner a free lock, with the token of the record.
func (b *byRule) heal(c Command, now clock.Instant) Answer {
	owner := c.Owner.ID
	switch h := b.holder(); {
	case h != nil && h.Owner != owner:
		return b.taken(now)
	case h != nil:
		b.record, _ = rule.Renew(b.record, owner, c.TTL, now)
		return Answer{Verdict: Done}
	}
	_, ans := rule.Admit(b.record, rule.Ask{Spec: rule.Mutex, Owner: owner, TTL: c.TTL}, now)
	if ans.Verdict == rule.Buried {
		return Answer{Verdict: Buried}
	}
	b.record.Spec = rule.Mutex
	b.record.Holds = []rule.Hold{{Owner: owner, Meta: c.Owner.Meta, Weight: 1, Count: 1, Expiry: expiry(c.TTL, now), Token: b.record.Token}}
	return Answer{Verdict: Done}
}

func (b *byRule) confirm(owner string, token uint64, now clock.Instant) Answer {
	h := b.holder()
	if h == nil || h.Owner != owner {
		return b.taken(now)
	}
	if t := fence.Token(token); b.record.Token < t {
		held := *h
		held.Token, b.record.Token = t, t
		b.record.Holds = []rule.Hold{held}
		b.counted(now)
	}
	return Answer{Verdict: Done, Token: uint64(b.record.Token)}
}

// verdict returns the answer to a step that only the holder may take.
func (b *byRule) verdict(ans rule.Answer, now clock.Instant) Answer {
	if ans.Verdict == rule.Done {
		return Answer{Verdict: Done}
	}
	if !b.traits.Node {
		return Answer{Verdict: NotHeld}
	}
	return b.taken(now)
}

// taken returns the answer that names the holder, if there is one.
func (b *byRule) taken(now clock.Instant) Answer {
	h := b.holder()
	if h == nil {
		return Answer{Verdict: Nobody}
	}
	return Answer{Verdict: Taken, Holder: h.Owner, Left: left(h.Expiry, now)}
}

func (b *byRule) holder() *rule.Hold {
	if len(b.record.Holds) == 0 {
		return nil
	}
	return &b.record.Holds[0]
}

// expire removes what has expired.
func (b *byRule) expire(now clock.Instant) {
	b.record = rule.Expire(b.record, now)
	if b.traits.Node && b.forget != 0 && now >= b.forget {
		b.loseCounter()
	}
}

// counted notes that the counter was written.
func (b *byRule) counted(now clock.Instant) { b.forget = now.Add(counterLife) }

func (b *byRule) loseCounter() {
	b.record.Token, b.forget = 0, 0
	if h := b.holder(); h != nil {
		held := *h
		held.Token = 0
		b.record.Holds = []rule.Hold{held}
	}
}

// state returns the rule's state of the lock.
func (b *byRule) state(now clock.Instant) State {
	b.expire(now)
	s := State{Token: uint64(b.record.Token), Tombstones: map[string]time.Duration{}}
	if h := b.holder(); h != nil {
		s.Holder, s.Left = h.Owner, left(h.Expiry, now)
	}
	if s.Token != 0 {
		s.TokenLeft = left(b.forget, now)
	}
	for _, t := range b.record.Tombstones {
		s.Tombstones[t.Owner] = left(t.Expiry, now)
	}
	return s
}

func expiry(ttl time.Duration, now clock.Instant) clock.Instant {
	if ttl == 0 {
		return math.MaxInt64
	}
	return now.Add(ttl)
}
