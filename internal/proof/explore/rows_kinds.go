package explore

import "github.com/leasehold-dev/leasehold/internal/rule"

// readWrite returns a world with a read-write lock: each attempt is a reader's or a
// writer's.
func readWrite(attempts int, change func(*Model)) Model {
	return world(attempts, func(m *Model) {
		m.Kind = rule.ReadWrite
		if change != nil {
			change(m)
		}
	})
}

// permits returns a world with a semaphore of n.
func permits(n int64, attempts int, change func(*Model)) Model {
	return world(attempts, func(m *Model) {
		m.Kind = rule.Semaphore(n)
		if change != nil {
			change(m)
		}
	})
}

// broken returns a world in which an operator may break leases. One of them is there at the
// beginning, with another slot at one node, which has to be healed.
func broken(attempts int, change func(*Model)) Model {
	return permits(2, attempts, func(m *Model) {
		m.Crossed, m.Breaks, m.Check = true, true, Safety|Revived
		change(m)
	})
}

// kindRows returns the rows of locks that several can hold.
func kindRows() []Row {
	return []Row{
		{Name: "RW1", What: "two of readers and writers: as shipped",
			Model: readWrite(2, nil)},
		{Name: "RW1-renew", What: "the same with renewals, which heal nodes",
			Model: readWrite(2, func(m *Model) { m.Renewals = 1 })},
		{Name: "RW1-heal", What: "two readers after a writer that not every node knows of; a reader is given back to a node",
			Model: readWrite(2, func(m *Model) { m.TTL, m.Renewals, m.Wrote, m.Writers = 1, 1, true, -1 })},
		{Name: "RW1-crash", What: "two of readers and writers; a node forgets, and stays out for as long as a lease",
			Model: readWrite(2, func(m *Model) { m.Crashes, m.Quarantine, m.KeepCounter = 1, 2, true })},
		{Name: "RW1-three", What: "three of readers and writers",
			Model: readWrite(3, func(m *Model) { m.TTL = 1 })},
		{Name: "RW2", What: "the first reader after a writer shares the last token",
			Model: readWrite(2, func(m *Model) { m.Check, m.KindRules.NeverDraws = Tokens, true }), Want: Tokens, Mutant: "node-readers-draw"},
		{Name: "RW2-confirm", What: "the tokens of readers and writers are not confirmed", Off: []string{"confirm-token"},
			Model: readWrite(3, func(m *Model) { m.TTL, m.Check, m.Writers = 1, Tokens, 1 }), Want: Tokens, Mutant: "quorum-confirm-token"},
		{Name: "RW3", What: "a reader is given back to a node and draws no token there",
			Model: readWrite(2, func(m *Model) {
				m.TTL, m.Renewals, m.Check, m.Wrote, m.Writers, m.KindRules.HealsUndrawn = 1, 1, Tokens, true, -1, true
			}), Want: Tokens, Mutant: "node-heals-draw"},
		{Name: "BR1", What: "two permits on two nodes, which an operator breaks, and an attempt that wants one",
			Model: permits(2, 3, func(m *Model) {
				m.Nodes, m.Clients, m.TTL, m.Full, m.Breaks, m.Check = 2, 3, 1, true, true, Safety
			})},
		{Name: "BR1-renew", What: "a lease that an operator breaks, renewed twice",
			Model: broken(2, func(m *Model) { m.Renewals = 2 })},
		{Name: "BR1-crash", What: "the same with one renewal; a node forgets, and stays out for longer than a lease",
			Model: broken(2, func(m *Model) { m.Renewals, m.Crashes, m.Quarantine, m.KeepCounter = 1, 1, 3, true })},
		{Name: "BR2", What: "the same; a lease that is broken is over at once",
			Model: permits(2, 3, func(m *Model) {
				m.Nodes, m.Clients, m.TTL, m.Full, m.Breaks, m.Check, m.KindRules.BreaksAtOnce = 2, 3, 1, true, true, Mutex, true
			}), Want: Mutex, Mutant: "node-breaks-later"},
		{Name: "BR3", What: "a lease that was broken is renewed",
			Model: broken(2, func(m *Model) { m.Renewals, m.Check, m.KindRules.RenewsBroken = 1, Revived, true }), Want: Revived, Mutant: "node-renews-no-broken"},
		{Name: "BR4", What: "a node that is to break a lease leaves no tombstone",
			Model: broken(2, func(m *Model) { m.Renewals, m.Check, m.KindRules.BreaksUnburied = 2, Revived, true }), Want: Revived, Mutant: "node-break-buries"},
		{Name: "BR4-short", What: "its tombstone lasts as long as a lease, not counting the time to ask the last node",
			Model: broken(2, func(m *Model) { m.Renewals, m.Check, m.ShortTombstones = 2, Revived, true }), Want: Revived, Mutant: "node-break-buries-long"},
		{Name: "S1", What: "a semaphore of two permits: as shipped",
			Model: permits(2, 2, func(m *Model) { m.TTL, m.Check = 1, Safety|Whole })},
		{Name: "S1-two", What: "the same on two nodes, with three attempts",
			Model: permits(2, 3, func(m *Model) { m.TTL, m.Nodes, m.Check = 1, 2, Safety|Whole })},
		{Name: "S1-full", What: "two permits are released, and two attempts ask for them: on two nodes the releases cross",
			Model: permits(2, 4, func(m *Model) { m.Nodes, m.Clients, m.TTL, m.Full, m.Check = 2, 4, 1, true, Safety|Whole })},
		{Name: "S1-ticks", What: "two attempts on three nodes, with leases of two ticks",
			Model: permits(2, 2, nil)},
		{Name: "S1-renew", What: "a lease with another slot at one node, which it renews",
			Model: permits(2, 3, func(m *Model) { m.Crossed, m.Renewals, m.Check = true, 1, Safety|Whole })},
		{Name: "S2", What: "a majority that granted any slots is enough", Off: []string{"agree-slots"},
			Model: permits(2, 2, func(m *Model) { m.TTL, m.Check = 1, Mutex }), Want: Mutex, Mutant: "quorum-agree-slots"},
		{Name: "S3", What: "a renewal does not name the slots of the lease",
			Model: permits(2, 3, func(m *Model) { m.Crossed, m.Renewals, m.Check, m.KindRules.RenewsOthers = true, 1, Mutex, true }), Want: Mutex, Mutant: "node-renews-slots"},
		{Name: "S4", What: "an owner that must have certain slots keeps others until it has them",
			Model: permits(2, 2, func(m *Model) { m.TTL, m.Nodes, m.Check, m.KindRules.KeepsOthers = 1, 2, Whole, true }), Want: Whole, Mutant: "node-gives-slots-up"},
		{Name: "S4-full", What: "the same where the releases of two permits cross",
			Model: permits(2, 4, func(m *Model) {
				m.Nodes, m.Clients, m.TTL, m.Full, m.Check, m.KindRules.KeepsOthers = 2, 4, 1, true, Whole, true
			}), Want: Whole, Mutant: "node-gives-slots-up"},
		{Name: "S1-orphan", What: "late requests for certain slots; none is under way for longer than tombstones last",
			Model: permits(2, 2, func(m *Model) { m.Nodes, m.Check, m.MaxDelay = 2, Orphans, 1 })},
		{Name: "S1-bury", What: "the same; a release leaves no tombstone if it finds other slots", Off: []string{"bury-repeated"},
			Model: permits(2, 2, func(m *Model) { m.Nodes, m.Check, m.MaxDelay = 2, Orphans, 1 }), Want: Orphans, Mutant: "quorum-bury-repeated"},
	}
}
