package explore

// inQueue returns a world in which attempts wait: two at a time, each for at most three
// ticks, in which it asks a node up to twice.
func inQueue(attempts int, change func(*Model)) Model {
	return world(attempts, func(m *Model) {
		m.Waits, m.Asks, m.Patience = true, 2, 3
		m.Check = Safety | Served
		if change != nil {
			change(m)
		}
	})
}

// one returns such a world with a single node.
func one(attempts int, change func(*Model)) Model {
	return inQueue(attempts, func(m *Model) {
		m.Nodes = 1
		change(m)
	})
}

// rejoining returns a world with two nodes in which one attempt has the lock at first,
// another waits, and a client that releases may take its next place in the same
// message.
func rejoining(attempts int, change func(*Model)) Model {
	return inQueue(attempts, func(m *Model) {
		m.Nodes, m.Returns, m.Begun, m.Asks, m.Patience = 2, true, true, 1, 2
		change(m)
	})
}

// rejoinActions has all actions of an attempt that began with a release, except that it gives
// way.
var rejoinActions = []Action{Returned, Placed, Bare, Claimed, Dropped, Early}

// waitingRows returns the rows of waiting and handing on.
func waitingRows() []Row {
	return []Row{
		{Name: "W1", What: "one node hands the lock to waiters in its queue: as shipped",
			Model: one(3, func(*Model) {})},
		{Name: "W1-late", What: "the same; a request is given up and arrives late, or never",
			Model: one(3, func(m *Model) { m.Doubts = 1 })},
		{Name: "W1-twice", What: "the same; a message arrives twice",
			Model: one(3, func(m *Model) { m.Twice = 1 })},
		{Name: "W1-gone", What: "the same; a live waiter is mistaken for a dead one, and requests are repeated early",
			Model: one(3, func(m *Model) { m.Skips, m.Polls = 1, true })},
		{Name: "W1-renew", What: "the same; leases are renewed",
			Model: one(3, func(m *Model) { m.Renewals = 1 })},
		{Name: "W1-crash", What: "the same; the node crashes, and may still know its queue",
			Model: one(3, func(m *Model) { m.Crashes, m.Quarantine, m.KeepCounter, m.KeepQueue = 1, 2, true, true })},
		{Name: "W1-every", What: "the same in a smaller world, with every event that the machines accept",
			Model: one(2, func(m *Model) { m.EveryEvent, m.Twice = true, 1 })},
		{Name: "W2", What: "two nodes; two waiters may get one each",
			Model: inQueue(2, func(m *Model) { m.Nodes = 2 })},
		{Name: "W2-late", What: "the same; a waiter asks once; two requests are given up and arrive late, or never, and a message arrives twice",
			Model: inQueue(2, func(m *Model) { m.Nodes, m.Asks, m.Doubts, m.Twice = 2, 1, 2, 1 })},
		{Name: "W2-renew", What: "the same; leases are renewed",
			Model: inQueue(2, func(m *Model) { m.Nodes, m.Asks, m.Renewals = 2, 1, 1 })},
		{Name: "W2-crash", What: "the same; a node crashes",
			Model: inQueue(2, func(m *Model) { m.Nodes, m.Asks, m.Crashes, m.Quarantine, m.KeepCounter = 2, 1, 1, 2, true })},
		{Name: "W2-rank", What: "the same; a new waiter may come before all others, as with clocks that differ",
			Model: inQueue(2, func(m *Model) { m.Nodes, m.Asks, m.AnyRank = 2, 1, true })},
		{Name: "W2-three", What: "two nodes, three waiters; a waiter that gave way asks again; all within a tick",
			Model: inQueue(4, func(m *Model) { m.Nodes, m.Clients, m.TTL, m.Patience, m.Asks = 2, 3, 1, 1, 1 })},
		{Name: "W3", What: "three nodes: as shipped",
			Model: inQueue(2, func(m *Model) { m.Asks = 1 })},
		{Name: "W3-late", What: "the same, within a tick; two requests are given up and arrive late, or never, and a message arrives twice",
			Model: inQueue(2, func(m *Model) { m.TTL, m.Patience, m.Doubts, m.Twice = 1, 1, 2, 1 })},
		{Name: "W3-again", What: "three attempts; one of them may follow another that gave way; within a tick",
			Model: inQueue(3, func(m *Model) { m.Asks, m.TTL, m.Patience = 1, 1, 1 })},

		// Leaving the queue.
		{Name: "W4", What: "a waiter that has left gets nothing more, if no request is under way for longer than tombstones last",
			Model: one(3, func(m *Model) { m.Check, m.MaxDelay, m.Doubts = Orphans, 1, 1 })},
		{Name: "W4-renew", What: "the same; leases are renewed",
			Model: one(2, func(m *Model) { m.Check, m.MaxDelay, m.Doubts, m.Renewals = Orphans, 1, 1, 1 })},
		{Name: "W4-three", What: "the same; three nodes",
			Model: inQueue(2, func(m *Model) { m.Check, m.MaxDelay, m.Asks, m.Patience = Orphans, 1, 1, 2 })},

		// Releases with a place for the next attempt.
		{Name: "W5", What: "one node; a holder rejoins the queue with its release", Reach: rejoinActions,
			Model: one(3, func(m *Model) { m.Returns = true })},
		{Name: "W5-late", What: "the same; a request is given up and arrives late, or never, and a message arrives twice", Reach: rejoinActions,
			Model: one(3, func(m *Model) { m.Returns, m.Asks, m.Doubts, m.Twice = true, 1, 1, 1 })},
		{Name: "W5-gone", What: "the same; a live waiter is mistaken for a dead one, and requests are repeated early", Reach: rejoinActions,
			Model: one(3, func(m *Model) { m.Returns, m.Skips, m.Polls = true, 1, true })},
		{Name: "W5-renew", What: "the same; leases are renewed", Reach: rejoinActions,
			Model: one(3, func(m *Model) { m.Returns, m.Asks, m.Renewals = true, 1, 1 })},
		{Name: "W5-crash", What: "the same; the node crashes, and may still know its queue", Reach: rejoinActions,
			Model: one(3, func(m *Model) {
				m.Returns, m.Asks, m.Crashes, m.Quarantine, m.KeepCounter, m.KeepQueue = true, 1, 1, 2, true, true
			})},
		{Name: "W5-every", What: "the same, within a tick, with every event that the machines accept", Reach: rejoinActions,
			Model: one(3, func(m *Model) { m.Returns, m.EveryEvent, m.Asks, m.TTL, m.Patience = true, true, 1, 1, 1 })},
		{Name: "W5-orphan", What: "one node; an attempt that was released, or gave up its place, gets nothing more", Reach: rejoinActions,
			Model: one(3, func(m *Model) { m.Returns, m.Check, m.MaxDelay, m.Doubts = true, Orphans, 1, 1 })},
		{Name: "W6", What: "two nodes; a holder rejoins the queue with its release: as shipped", Reach: rejoinActions,
			Model: inQueue(3, func(m *Model) { m.Nodes, m.Returns, m.Asks, m.Patience = 2, true, 1, 2 })},
		{Name: "W6-late", What: "the same; one attempt has the lock at first, and another waits in the queue; a request is given up and arrives late, or never, and a message arrives twice", Reach: rejoinActions,
			Model: rejoining(3, func(m *Model) { m.Doubts, m.Twice = 1, 1 })},
		{Name: "W6-crash", What: "the same; a node crashes, and may still know its queue", Reach: rejoinActions,
			Model: rejoining(3, func(m *Model) { m.Crashes, m.Quarantine, m.KeepCounter, m.KeepQueue = 1, 2, true, true })},
		{Name: "W6-rank", What: "the same; a new waiter may come before all others, as with clocks that differ", Reach: rejoinActions,
			Model: rejoining(3, func(m *Model) { m.AnyRank = true })},
		{Name: "W6-way", What: "the same; an attempt asks twice, and may give way before a goroutine claims it", Reach: append(rejoinActions, Yielded),
			Model: rejoining(3, func(m *Model) { m.Asks = 2 })},
		{Name: "W6-again", What: "the same; an attempt asks once; three clients, four attempts, within a tick", Reach: rejoinActions,
			Model: rejoining(4, func(m *Model) { m.Clients, m.TTL, m.Patience = 3, 1, 1 })},
		{Name: "W6-three", What: "three nodes; a request is given up and arrives late, or never", Reach: rejoinActions,
			Model: rejoining(3, func(m *Model) { m.Nodes, m.Doubts = 3, 1 })},
		{Name: "W6-orphan", What: "an attempt that was released, or gave up its place, gets nothing more", Reach: rejoinActions,
			Model: rejoining(3, func(m *Model) { m.Check, m.MaxDelay, m.Doubts = Orphans, 1, 1 })},
		{Name: "W6-alone", What: "a rejoining attempt is placed, unnotified, also at a node where nobody has the lock",
			Model: rejoining(3, func(m *Model) { m.Check, m.MaxDelay, m.Rules.StandsAlone = Orphans, 1, true }), Want: Orphans, Mutant: "node-places-behind-a-holder"},
		{Name: "W6-whole", What: "a rejoining attempt is released only at nodes where it gets its place",
			Model: one(2, func(m *Model) { m.Returns, m.Check, m.MaxDelay, m.Rules.ReturnsWhole = true, Orphans, 1, true }), Want: Orphans, Mutant: "node-releases-without-a-place"},

		// Mechanisms that waiting depends on.
		{Name: "W-time", What: "a node's grant counts even when its time is over", Off: []string{"place-in-time"},
			Model: one(2, func(m *Model) { m.Check = Tokens }), Want: Tokens, Mutant: "quorum-place-in-time"},
		{Name: "W-pushed", What: "validity counts from the push that reports the grant",
			Model: one(3, func(m *Model) { m.Check, m.CountFromPush = Mutex, true }), Want: Mutex, Mutant: "redis-stamp-of-push"},
		{Name: "W-same", What: "a lock that is handed on keeps its token",
			Model: one(2, func(m *Model) { m.Check, m.Rules.HandsSame = Tokens, true }), Want: Tokens, Mutant: "node-hands-with-a-larger-token"},
		{Name: "W-quarantined", What: "a node in quarantine hands the lock to a waiter",
			Model: one(3, func(m *Model) {
				m.Crashes, m.Quarantine, m.KeepCounter, m.KeepQueue, m.Check, m.Rules.HandsQuarantined = 1, 2, true, true, Mutex, true
			}), Want: Mutex, Mutant: "node-hands-after-quarantine"},
		{Name: "W-tomb", What: "a waiter is released before its request arrives; no tombstones",
			Model: one(2, func(m *Model) { m.Check, m.MaxDelay, m.Rules.NoTombstones = Orphans, 1, true }), Want: Orphans, Mutant: "node-tombstones"},
		{Name: "W-bury", What: "a release that finds the lock leaves no tombstone, although an earlier request may be under way", Off: []string{"bury-repeated"},
			Model: one(2, func(m *Model) { m.Check, m.MaxDelay, m.Doubts = Orphans, 1, 1 }), Want: Orphans, Mutant: "quorum-bury-repeated"},
		{Name: "W-place", What: "a released waiter keeps its place",
			Model: one(3, func(m *Model) { m.Check, m.MaxDelay, m.Rules.PlacesStay = Orphans, 1, true }), Want: Orphans, Mutant: "node-release-ends-the-place"},
		{Name: "W-way", What: "nobody gives way", Off: []string{"give-way"},
			Model: inQueue(2, func(m *Model) { m.Nodes, m.Asks, m.Check = 2, 1, Served }), Want: Served, Mutant: "quorum-give-way"},
	}
}
