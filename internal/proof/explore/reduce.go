package explore

import (
	"github.com/leasehold-dev/leasehold/internal/leasefsm"
	"github.com/leasehold-dev/leasehold/internal/quorum"
)

// Partial-order reduction: a search leaves out steps that lead to nothing new. For each
// run with such a step there is one without it in which the nodes execute the same
// requests at the same time, and the same grants and renewals are made. This depends on
// how the production machines treat the events in question. So searches of smaller
// worlds with EveryEvent leave out nothing, and must come to the same verdicts.
//
//   - An attempt is not told that an acquire was refused, never left, or will
//     not be answered, nor that its nodes are late: all that can do is to lose
//     it, and giving up loses it as well.
//   - A lost attempt has to release where it may have been granted. The answers
//     that it still waits for are written off at once, so that the releases
//     are under way from then on, and arrive whenever they do.
//   - A release is under way from the moment a lease or an attempt is over, and
//     executed at once: until then the key could only have others refused, and
//     a request that is refused may as well never arrive. So may an acquire that
//     a tombstone would refuse, and no tombstones are kept. (Where orphans are
//     looked for, releases take their time and tombstones are kept.)
//   - A renewal is not told of refusals, doubts and lateness: all that can do
//     is to end it without success, as giving it up does; or to end the lease,
//     as giving that back does.
//   - Of a lease only the rest of its validity is kept, not how often it was
//     renewed to get there.

// tells reports whether a machine is told of an event. A late confirmation is more than
// a loss: it may change the token.
func (w *walker) tells(kind moveKind, s *slot, c *cell) bool {
	if w.m.EveryEvent {
		return true
	}
	switch kind {
	case tickAttempt:
		if w.m.Waits || w.m.hasSlots() {
			return true
		}
		for n := range w.m.Nodes {
			for _, msg := range s.cells[n].confirm {
				if msg.awaited() {
					return true
				}
			}
		}
		return false
	case doubtConfirm:
		return true
	case doubtAcquire:
		return w.m.Waits
	}
	return false
}

// reduces reports whether releases are reduced to the worst that they can do.
func (w *walker) reduces() bool {
	return !w.m.EveryEvent && !w.m.Plain && !w.m.Waits && !w.m.hasKind() && !w.m.ReuseOwner && w.m.Check&Orphans == 0 && !w.m.ReleaseVote
}

// reducesInQueue reports whether releases of waiters leave no tombstones, and are
// executed once more instead if an acquire comes late.
func (w *walker) reducesInQueue() bool {
	return w.m.Waits && !w.m.EveryEvent && !w.m.Plain && w.m.Check&Orphans == 0
}

// reducesShared reports whether the same goes for locks that several can hold. There a key
// that remains may be a reader's, whose token the next one shares, or have a slot that the
// next one does not get: only a writer's ends at once.
func (m *Model) reducesShared() bool {
	return m.hasKind() && !m.EveryEvent && !m.Plain && m.Check&Orphans == 0
}

// heals reports whether renewals give the lease to nodes that do not have it.
func (w *walker) heals() bool { return w.m.Renewals+w.m.Extends > 0 && w.healing }

// dropRefusals takes refusals off the wire.
func (c *cell) dropRefusals(waits bool) {
	if c.acquire.stage == saidNo && !waits {
		c.acquire = message{}
	}
	if c.extend.stage == saidNo {
		c.extend = message{}
	}
}

// writeOff tells a lost attempt that each answer has come or will never come.
func (w *walker) writeOff(s *slot) {
	for n := range w.m.Nodes {
		msg := &s.cells[n].acquire
		if !msg.awaited() {
			continue
		}
		e := quorum.Event{Kind: quorum.Unknown, Node: n, Op: quorum.Acquire}
		if msg.stage == saidYes {
			e.Kind, e.Token = quorum.Yes, 1 // which token makes no difference any more
		}
		*msg = msg.abandon()
		s.cells[n].share.said = 0
		w.send(s, w.stepAttempt(s.machine, e, s.age))
	}
}

// rebase replaces a lease by a newly granted one with the same remaining validity.
// Production code must not see a difference.
func (w *walker) rebase(s *slot) {
	if w.m.Plain || w.m.Floor || w.m.MaxDelay > 0 || w.m.MaxHold > 0 || w.m.hasBeside() { // the age of a lease tells more than that
		return
	}
	plain := w.stepLease(fresh, leasefsm.Granted, epoch, epoch)
	shift := w.lease(plain).Until().Sub(w.lease(s.machine).Until()) // of the time axis
	age := shift + ticks(int(s.age))
	if shift%tick != 0 || age < 0 {
		panic("explore: a renewed lease that no grant equals")
	}
	s.machine, s.age = plain, uint8(age/tick)
}
