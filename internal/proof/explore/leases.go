package explore

import (
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/leasefsm"
	"github.com/leasehold-dev/leasehold/internal/quorum"
)

// leases has the steps of clients with their leases: they renew, extend and release them.
type leases struct{ *judge }

// renew begins a renewal.
func (l *leases) renew(s *slot, short bool) {
	s.machine = l.stepLease(s.machine, leasefsm.RenewalSent, 0, at(s.age))
	s.vote, s.voteAt, s.short = freshFor(s.role), s.age, short
	s.hopeless = l.m.Breaks && l.isBroken(s)
	s.renewals++
	for n := range l.m.Nodes {
		if s.role.asks(n) {
			s.cells[n].extend = message{stage: asked}
		}
	}
}

// stepRenewal steps the vote of a renewal, and the lease by its verdict.
func (l *leases) stepRenewal(st *state, s *slot, e quorum.Event) {
	step := l.stepVote(s.vote, e, s.age-s.voteAt)
	for _, send := range step.sends {
		s.cells[send.Node].heal()
	}
	s.vote = step.next
	v := l.vote(s.vote)
	if v.Verdict() == quorum.Open {
		return
	}
	start := at(s.voteAt)
	if s.short { // as if all that the lease is shorter were drift
		start = start.Add(-ticks(l.m.TTL - 1))
	}
	l.extended(st, s, v, start)
	l.endVote(s)
	if !l.lease(s.machine).Live() {
		l.end(s)
		return
	}
	if !l.m.EveryEvent {
		l.rebase(s)
	}
}

// extended tells the lease of the verdict on an extension that began at start.
func (l *leases) extended(st *state, s *slot, v *quorum.Vote, start clock.Instant) {
	event := leasefsm.RenewalUnknown
	switch {
	case v.Gone():
		event = leasefsm.RenewalDenied
	case v.Verdict() == quorum.Won:
		event = leasefsm.Renewed
	}
	before := s.machine
	s.machine = l.stepLease(s.machine, event, start, at(s.age))
	if v.Verdict() == quorum.Won && l.healing {
		// Late answers still reach the vote, and can make it heal nodes. It is sound to
		// assume that it heals them: at a node that has this lease, or another owner's,
		// healing does nothing.
		for n := range l.m.Nodes {
			if c := &s.cells[n]; c.extend.sent() || c.extend.stage == saidAbsent || c.beside != idle {
				c.heal()
			}
		}
	}
	if event == leasefsm.Renewed && l.lease(s.machine).Until() > l.lease(before).Until() && l.valid(s) {
		l.checkRenewal(st, s)
		if s.hopeless {
			l.broke(Revived)
		}
	}
}

func (l *leases) endVote(s *slot) {
	for n := range l.m.Nodes {
		s.cells[n].stray(s.short)
	}
	s.vote, s.voteAt, s.short, s.hopeless = 0, 0, false, false
}

// end ends the lease, but its messages and keys remain. Its holder may still release
// it.
func (l *leases) end(s *slot) {
	l.endVote(s)
	l.endBeside(s)
	s.endBreak()
	s.life, s.machine, s.token, s.renewals, s.beside = over, 0, 0, 0, beside{}
	if !l.m.EveryEvent && !l.m.Returns {
		l.release(s)
	}
}

// release makes the holder release. As in production, a node without the key keeps a
// tombstone: the acquire may not have arrived yet.
func (l *leases) release(s *slot) {
	s.released = true
	if s.life == holding {
		l.end(s)
	}
	if l.m.ReleaseVote {
		l.beginBeside(s, quorum.Release)
		s.beside.begun = 0
		return
	}
	for n := range l.m.Nodes {
		s.cells[n].bury = s.role.asks(n)
		if s.cells[n].queue.always = s.repeated; l.m.hasKind() {
			s.cells[n].queue.always, s.cells[n].share.always = false, s.repeated
		}
	}
}

// beginBeside begins a vote besides the renewal and asks all nodes.
func (l *leases) beginBeside(s *slot, op quorum.Op) {
	if op == quorum.Extend {
		s.machine = l.stepLease(s.machine, leasefsm.RenewalSent, 0, at(s.age))
	}
	s.beside = beside{vote: freshBeside(op), op: op, begun: s.beside.begun + 1}
	for n := range l.m.Nodes {
		s.cells[n].beside = asked
	}
}

// stepBeside steps the vote, and does what its verdict leads to.
func (l *leases) stepBeside(st *state, s *slot, e quorum.Event) {
	b := &s.beside
	step := l.stepVote(b.vote, e, b.age)
	for _, send := range step.sends {
		s.cells[send.Node].heal()
	}
	b.vote = step.next
	v := l.vote(b.vote)
	if v.Verdict() == quorum.Open {
		return
	}
	won, op, age := v.Verdict() == quorum.Won, b.op, b.age
	switch {
	case op == quorum.Release:
		if won {
			l.checkFree(st, s)
		}
	case s.life == holding:
		l.extended(st, s, v, at(s.age-age))
	}
	l.endBeside(s)
	if s.life == holding && !l.lease(s.machine).Live() {
		l.end(s)
	}
}

// endBeside stops waiting for the answers. Messages that are under way stay so.
func (l *leases) endBeside(s *slot) {
	b := &s.beside
	for n := range l.m.Nodes {
		c := &s.cells[n]
		if c.beside == asked {
			switch b.op {
			case quorum.Release:
				c.bury = true
			default:
				c.strays[0] = min(c.strays[0]+1, 3)
			}
		}
		c.beside = idle
	}
	*b = beside{begun: b.begun}
}

// rebase replaces a lease by a newly granted one with the same remaining validity.
// Production code must not see a difference.
func (l *leases) rebase(s *slot) {
	if l.m.Plain || l.m.Floor || l.m.MaxDelay > 0 || l.m.MaxHold > 0 || l.m.hasBeside() { // the age of a lease tells more than that
		return
	}
	plain := l.stepLease(fresh, leasefsm.Granted, epoch, epoch)
	shift := l.lease(plain).Until().Sub(l.lease(s.machine).Until()) // of the time axis
	age := shift + ticks(int(s.age))
	if shift%tick != 0 || age < 0 {
		panic("explore: a renewed lease that no grant equals")
	}
	s.machine, s.age = plain, uint8(age/tick)
}

// dead reports whether a lease is not valid and cannot become valid again.
func (l *leases) dead(s *slot) bool {
	if l.valid(s) {
		return false
	}
	revives := func(start uint8) bool {
		renewed := l.stepLease(s.machine, leasefsm.Renewed, at(start), at(s.age))
		return l.lease(renewed).Valid(at(s.age))
	}
	if b := &s.beside; b.vote != 0 && b.op == quorum.Extend && revives(s.age-b.age) {
		return false
	}
	return s.vote == 0 || !revives(s.voteAt)
}
