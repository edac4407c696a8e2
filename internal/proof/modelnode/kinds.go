package modelnode

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/rule"
)

// Shared is everything that one node keeps about one lock that several can hold: a
// read-write lock or a semaphore. It is a value, like a Lock, and does what internal/rule
// says. Tokens count from 1.
type Shared struct {
	rule.Record
	// QuarantinedUntil is the end of a quarantine, as in Lock.
	QuarantinedUntil clock.Instant
}

// KindRules say how a node behaves with such locks. Each switch removes one mechanism.
type KindRules struct {
	// HealsUndrawn: a lease that is given back to a node draws no token there.
	HealsUndrawn bool
	// RenewsOthers: a renewal does not look at the slots of the lease.
	RenewsOthers bool
	// KeepsOthers: an owner that must have certain slots keeps others until it has them.
	KeepsOthers bool
	// BreaksAtOnce: a lease that is broken is over at once.
	BreaksAtOnce bool
	// RenewsBroken: a lease that was broken is renewed.
	RenewsBroken bool
	// BreaksUnburied: a node that is to break a lease leaves no tombstone.
	BreaksUnburied bool
	// NeverDraws: readers share the last token, also the first after a writer.
	NeverDraws bool
}

// said returns the answer for one of the rule.
func said(ans rule.Answer) Answer[string] {
	a := Answer[string]{Holder: ans.Blocker.Owner, ExpiresIn: ans.ExpiresIn, Token: uint64(ans.Token)}
	switch ans.Verdict {
	case rule.Granted, rule.Done:
		a.Holder = ""
	case rule.Buried:
		a.Verdict = Buried
	default:
		a.Verdict = Taken
	}
	return a
}

// Acquire grants the lock if it has room. The second result has the slots of the lease.
func (l Shared) Acquire(r KindRules, a rule.Ask, now clock.Instant) (Shared, Answer[string], rule.Slots) {
	if now < l.QuarantinedUntil {
		return l, Answer[string]{Verdict: Quarantined, ExpiresIn: l.QuarantinedUntil.Sub(now)}, ""
	}
	before := l.Record
	after, ans := rule.Admit(l.Record, a, now)
	if r.KeepsOthers && ans.Verdict == rule.Busy {
		after = before
	}
	if first := ans.Verdict == rule.Granted && !ans.Again; r.NeverDraws && first && a.Weight < a.Spec.Limit && a.Spec.Shared {
		after.Token = max(before.Token, 1)
		ans.Token = after.Token
	}
	l.Record = after
	return l.advance(now), said(ans), ans.Slots
}

// advance hands the lock on. A node in quarantine grants nothing.
func (l Shared) advance(now clock.Instant) Shared {
	if now >= l.QuarantinedUntil {
		l.Record, _ = rule.Advance(l.Record, 0, now)
	}
	return l
}

// Confirm makes the next token larger than token, if the owner has a lease with these
// slots.
func (l Shared) Confirm(owner string, s rule.Slots, token uint64, now clock.Instant) (Shared, Answer[string]) {
	after, ans := rule.ConfirmToken(l.Record, owner, s, fence.Token(token), now)
	l.Record = after
	return l, said(ans)
}

// Extend renews a lease with these slots. If the owner's lease has other slots, Extend ends it. The
// answer to an owner without a lease says whether the lock has room for one.
func (l Shared) Extend(r KindRules, a rule.Ask, now clock.Instant) (Shared, Answer[string]) {
	if !r.RenewsOthers {
		l.Record = rule.DropOthers(l.Record, a.Owner, a.Slots, now)
	}
	if r.RenewsBroken {
		l.Holds = slices.Clone(l.Holds)
		for i := range l.Holds {
			l.Holds[i].Broken = false
		}
	}
	after, ans := rule.Renew(l.Record, a.Owner, a.TTL, now)
	l.Record = after
	l = l.advance(now)
	if ans.Verdict == rule.Done {
		return l, said(ans)
	}
	_, could := rule.Admit(l.Record, a, now)
	if could.Verdict == rule.Granted {
		return l, Answer[string]{Verdict: Taken}
	}
	return l, said(could)
}

// Heal grants a lease with these slots, even if others wait. It draws a token like every other
// grant: the next reader shares it, and has to come after an earlier writer.
func (l Shared) Heal(r KindRules, a rule.Ask, now clock.Instant) (Shared, Answer[string]) {
	last := l.Record.Token
	l, ans, _ := l.Acquire(r, a, now)
	if r.HealsUndrawn {
		l.Record.Token = last
	}
	return l, ans
}

// Release ends the lease of e.Owner, whatever its slots. An owner without one is refused
// from then on, if e.Tombstone is positive, and every owner if always is set.
func (l Shared) Release(e rule.End, always bool, now clock.Instant) (Shared, Answer[string]) {
	after, ans := rule.Release(l.Record, e, now)
	if always && ans.Verdict == rule.Done {
		after, _ = rule.Release(after, e, now)
	}
	l.Record = after
	return l.advance(now), said(ans)
}

// Break breaks the lease of an owner that makes one attempt only, and refuses late requests of
// it for as long as tombstone.
func (l Shared) Break(r KindRules, owner string, tombstone time.Duration, now clock.Instant) (Shared, Answer[string]) {
	before := l.Tombstones
	after, ans := rule.BreakPart(l.Record, rule.Break{Owner: owner, Token: 1, Now: r.BreaksAtOnce}, rule.Part{Tombstone: tombstone}, now)
	if r.BreaksUnburied {
		after.Tombstones = before
	}
	l.Record = after
	return l.advance(now), said(ans)
}

// Crash is a restart that loses everything but, if it is durable, the last token.
func (l Shared) Crash(keepCounter bool, quarantine time.Duration, now clock.Instant) Shared {
	after := Shared{QuarantinedUntil: now.Add(quarantine), Record: rule.Record{Spec: l.Spec}}
	if keepCounter {
		after.Token = l.Token
	}
	return after
}
