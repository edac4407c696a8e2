package explore

// Partial-order reduction: a search leaves out steps that lead to nothing new. For each
// run with such a step there is one without it in which the nodes execute the same
// requests at the same time, and the same grants and renewals are made. This depends on
// how the production machines treat the events in question. So searches of smaller
// worlds with EveryEvent leave out nothing, and must come to the same verdicts.
//
//   - An attempt is not notified that an acquire was refused, never left, or will
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
//   - A renewal is not notified of refusals, doubts and lateness: all that can do
//     is to end it without success, as giving it up does; or to end the lease,
//     as giving that back does.
//   - Of a lease only the rest of its validity is kept, not how often it was
//     renewed to get there.

// reduces reports whether releases are reduced to the worst that they can do.
func (m *Model) reduces() bool {
	return !m.EveryEvent && !m.Plain && !m.Waits && !m.hasKind() && !m.ReuseOwner && m.Check&Orphans == 0 && !m.ReleaseVote
}

// reducesInQueue reports whether releases of waiters leave no tombstones, and are
// executed once more instead if an acquire comes late.
func (m *Model) reducesInQueue() bool {
	return m.Waits && !m.EveryEvent && !m.Plain && m.Check&Orphans == 0
}

// reducesShared reports whether the same goes for locks that several can hold. There a key
// that remains may be a reader's, whose token the next one shares, or have a slot that the
// next one does not get: only a writer's ends at once.
// Where leases are broken, tombstones are kept.
func (m *Model) reducesShared() bool {
	return m.hasKind() && !m.Breaks && !m.EveryEvent && !m.Plain && m.Check&Orphans == 0
}
