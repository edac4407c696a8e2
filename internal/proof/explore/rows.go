package explore

import "github.com/leasehold-dev/leasehold/internal/proof/modelnode"

// Row is one run of the set: a world, the mechanisms that are switched off, and the
// verdict that the search must come to.
type Row struct {
	Name string
	// What says what the world is like.
	What string
	// Off are mechanisms of the production code that are switched off, which
	// only the checker's build can do. The Model has mechanisms that are off in the nodes.
	Off   []string
	Model Model
	// Want is the property that must be found broken, 0 if all must hold.
	Want Property
	// Reach is what has to happen on some path; otherwise the row shows nothing.
	Reach []Action
	// Mutant is the mechanism whose absence breaks it, by the name that the
	// simulator has for it too; empty where it is an assumption that does not
	// hold, or nothing.
	Mutant string
}

// plain nodes do what the scripts do, but draw tokens from 1: what holds
// without a clock as floor does not rest on clocks.
var plain = modelnode.Rules{NoClock: true}

// world is three nodes, two clients, and leases of two ticks, changed.
func world(attempts int, change func(*Model)) Model {
	m := Model{Nodes: 3, Clients: 2, Attempts: attempts, TTL: 2, Rules: plain, Check: Safety}
	if change != nil {
		change(&m)
	}
	return m
}

// Rows is the whole set.
func Rows() []Row {
	return append([]Row{
		// How a token is agreed on.
		{Name: "A1", What: "the token is the largest answer, and not written back", Off: []string{"confirm-token"},
			Model: world(3, nil), Want: Tokens, Mutant: "quorum-confirm-token"},
		{Name: "A2", What: "the token is written back to any majority", Off: []string{"confirm-owned"},
			Model: world(2, func(m *Model) {
				m.Spread = 1
				m.Rules.ConfirmAnywhere = true
			}), Want: Tokens, Mutant: "quorum-confirm-owned"},
		{Name: "A2-node", What: "no clock at all; a node confirms a lock that it has since given to another attempt",
			Model: world(2, func(m *Model) {
				m.NoTime, m.Check, m.Spread = true, Tokens, 1
				m.Rules.ConfirmAnywhere = true
			}), Want: Tokens, Mutant: "node-confirms-owner-only"},
		{Name: "A3", What: "the token is written back to owned nodes: as shipped",
			Model: world(3, func(m *Model) { m.Spread = 1 })},
		{Name: "A3-every", What: "the same in a smaller world, with every event that the machines accept",
			Model: world(2, func(m *Model) { m.EveryEvent = true })},
		{Name: "A3-twice", What: "the same; two requests arrive twice",
			Model: world(2, func(m *Model) { m.Twice = 2 })},
		{Name: "A3-propose", What: "the same; clients propose any token",
			Model: world(3, func(m *Model) { m.Proposals = []int{2, 5} })},
		{Name: "R2", What: "no clock at all, keys lost at any time, counters kept",
			Model: world(3, func(m *Model) { m.NoTime, m.Check = true, Tokens })},
		{Name: "R2-five", What: "the same with five nodes and three lost keys",
			Model: world(2, func(m *Model) { m.NoTime, m.Check, m.Nodes, m.Losses = true, Tokens, 5, 3 })},
		{Name: "R3", What: "three clients, no clock at all",
			Model: world(3, func(m *Model) { m.NoTime, m.Check, m.Clients = true, Tokens, 3 })},

		// Restarts that forget.
		{Name: "B1", What: "a node crashes without memory, no quarantine",
			Model: world(2, func(m *Model) { m.Crashes, m.Check = 1, Mutex }), Want: Mutex, Mutant: "quarantine"},
		{Name: "B2", What: "quarantine as long as the TTL, two crashes, counters lost too",
			Model: world(3, func(m *Model) { m.Crashes, m.Quarantine, m.Check = 2, 2, Mutex })},
		{Name: "B2''", What: "quarantine one tick short",
			Model: world(2, func(m *Model) { m.Crashes, m.Quarantine, m.Check = 1, 1, Mutex }), Want: Mutex, Mutant: "quarantine-long-enough"},
		{Name: "B3", What: "quarantine as long as the TTL, the counter is lost",
			Model: world(3, func(m *Model) { m.Crashes, m.Quarantine, m.Check = 1, 2, Tokens }), Want: Tokens, Mutant: "node-clock-floor"},
		{Name: "R5", What: "quarantine, and counters that survive; renewals",
			Model: world(3, func(m *Model) { m.Crashes, m.Quarantine, m.KeepCounter, m.Renewals = 2, 2, true, 1 })},
		{Name: "G1-quarantined", What: "nodes get a forgotten lease back even while they are in quarantine",
			Model: world(2, func(m *Model) {
				m.Crashes, m.Quarantine, m.KeepCounter, m.Renewals, m.Rules.HealsQuarantined = 1, 2, true, 2, true
			}), Want: Mutex, Mutant: "node-heals-after-quarantine"},
		{Name: "G1", What: "nodes get a forgotten lease back after their quarantine: as shipped",
			Model: world(2, func(m *Model) { m.Crashes, m.Quarantine, m.KeepCounter, m.Renewals = 2, 2, true, 2 })},
		{Name: "G2", What: "the same; two requests arrive twice",
			Model: world(2, func(m *Model) { m.Crashes, m.Quarantine, m.KeepCounter, m.Renewals, m.Twice = 1, 2, true, 1, 2 })},
		{Name: "B4", What: "lost counters are read back from peers during quarantine",
			Model: world(3, func(m *Model) { m.Crashes, m.Quarantine, m.Reread = 1, 2, RereadDuring }), Want: Tokens},
		{Name: "B5", What: "lost counters are read back from peers after quarantine",
			Model: world(3, func(m *Model) { m.Crashes, m.Quarantine, m.Reread = 1, 2, RereadAfter })},
		{Name: "H2", What: "the clock is the floor of tokens, with an error below the quarantine; one crash",
			Model: floor(1, 1, 2)},
		{Name: "H3", What: "the same; two crashes",
			Model: floor(1, 2, 2)},
		{Name: "K1", What: "the clock is the floor of tokens, with an error as long as the quarantine",
			Model: floor(2, 1, 2), Want: Tokens},
		{Name: "K2", What: "the clock is the floor of tokens, with an error longer than the quarantine",
			Model: floor(3, 1, 2), Want: Tokens},

		// One list of nodes is replaced by another.
		{Name: "L1", What: "of four nodes, the list 1,2,3 is replaced by 1,2,4: as shipped",
			Model: lists(2, nil)},
		{Name: "L2", What: "nodes do not check the lists of clients",
			Model: lists(2, func(m *Model) { m.TTL, m.SwitchWait, m.AnyList = 1, 1, true }), Want: Mutex, Mutant: "node-looks-at-lists"},
		{Name: "L3", What: "the operator does not wait until leases of the old list are over",
			Model: lists(2, func(m *Model) { m.TTL, m.SwitchWait = 1, 0 }), Want: Mutex, Mutant: "replace-waits"},

		// The protocol's assumptions about time and nodes.
		{Name: "C1", What: "a node's clock jumps ahead",
			Model: world(2, func(m *Model) { m.Jumps, m.Check = 1, Mutex }), Want: Mutex},
		{Name: "C2", What: "a node loses a key and nobody notices",
			Model: world(2, func(m *Model) { m.Losses, m.Check = 1, Mutex }), Want: Mutex},
		{Name: "C3", What: "validity counts from the answer", Off: []string{"from-start"},
			Model: world(2, func(m *Model) { m.Check = Mutex }), Want: Mutex, Mutant: "lease-from-start"},

		{Name: "C4", What: "half of the nodes count as a majority", Off: []string{"over-half"},
			Model: world(2, func(m *Model) { m.Check = Mutex }), Want: Mutex, Mutant: "quorum-over-half"},

		// Owners and releases.
		{Name: "D1", What: "a client uses one owner value for all its attempts",
			Model: world(3, func(m *Model) { m.ReuseOwner, m.Nodes, m.TTL, m.Check = true, 2, 1, Mutex }), Want: Mutex, Mutant: "client-owner-per-attempt"},
		{Name: "D2", What: "a new owner value for every attempt",
			Model: world(4, nil)},
		{Name: "Z1", What: "an acquire arrives after its release, no tombstones",
			Model: world(2, func(m *Model) { m.Check, m.MaxDelay, m.Rules.NoTombstones = Orphans, 1, true }), Want: Orphans, Mutant: "node-tombstones"},
		{Name: "Z1-node", What: "a release asks for no tombstone at a node to which the acquire may be under way", Off: []string{"bury-doubtful"},
			Model: world(2, func(m *Model) { m.Check, m.MaxDelay = Orphans, 1 }), Want: Orphans, Mutant: "quorum-bury-doubtful"},
		{Name: "Z1-doubt", What: "an acquire of unknown outcome counts as failed", Off: []string{"doubt-unknown"},
			Model: world(2, func(m *Model) { m.Check, m.MaxDelay = Orphans, 1 }), Want: Orphans, Mutant: "quorum-doubt-unknown"},
		{Name: "Z1-lost", What: "a lost attempt keeps the nodes that it was granted", Off: []string{"clean-up-lost"},
			Model: world(2, func(m *Model) { m.Check, m.MaxDelay = Orphans, 1 }), Want: Orphans, Mutant: "quorum-clean-up-lost"},
		{Name: "Z2", What: "tombstones; no request is under way for longer than they last",
			Model: world(2, func(m *Model) { m.Check, m.MaxDelay = Orphans, 1 })},
		{Name: "Z3", What: "a request is under way for longer than a tombstone lasts",
			Model: world(2, func(m *Model) { m.Check = Orphans }), Want: Orphans},

		// Renewals.
		{Name: "E1", What: "a renewal counts even if the old validity has ended", Off: []string{"renew-in-time"},
			Model: world(2, func(m *Model) { m.Renewals = 1 }), Want: Renewals, Mutant: "lease-renew-in-time"},
		{Name: "E1-order", What: "the same on connections that keep the order of messages", Off: []string{"renew-in-time"},
			Model: world(2, func(m *Model) { m.Renewals, m.InOrder = 1, true }), Want: Renewals, Mutant: "lease-renew-in-time"},
		{Name: "E4", What: "the same, and extending takes the lock if it is free", Off: []string{"renew-in-time"},
			Model: world(2, func(m *Model) { m.Renewals, m.Rules.ExtendCreates = 1, true }), Want: Renewals, Mutant: "lease-renew-in-time"},
		{Name: "M3", What: "a renewal counts only inside the old validity: as shipped",
			Model: world(3, func(m *Model) { m.Renewals = 2 })},
		{Name: "M3-every", What: "the same in a smaller world, with every event that the machines accept",
			Model: world(2, func(m *Model) { m.Renewals, m.EveryEvent = 1, true })},
		{Name: "M3-twice", What: "the same; two requests arrive twice",
			Model: world(2, func(m *Model) { m.Renewals, m.Twice = 2, 2 })},
		{Name: "E5", What: "extending takes the lock if it is free, but the renewal must be in time",
			Model: world(2, func(m *Model) { m.Renewals, m.Rules.ExtendCreates = 2, true })},
		{Name: "E5-orphan", What: "extending takes the lock if it is free, also after its release",
			Model: world(2, func(m *Model) {
				m.Renewals, m.Check, m.MaxDelay, m.Rules.ExtendCreates = 1, Orphans, 1, true
			}), Want: Orphans, Mutant: "node-never-creates"},
		{Name: "E2", What: "the last extension decides when a lease ends, and may shorten it",
			Model: world(2, func(m *Model) { m.Renewals, m.ShortRenewals, m.Check, m.Rules.ExpiryShrinks = 1, true, Mutex, true }), Want: Mutex, Mutant: "node-never-shortens"},
		{Name: "E3", What: "an extension never shortens a lease",
			Model: world(3, func(m *Model) { m.Renewals, m.ShortRenewals = 2, true })},
	}, append(append(besideRows(), kindRows()...), waitingRows()...)...)
}

// lists returns a world in which one list of nodes is replaced by another.
func lists(attempts int, change func(*Model)) Model {
	return world(attempts, func(m *Model) {
		m.Lists, m.Nodes, m.SwitchWait, m.Check = true, 4, 2, Mutex
		if change != nil {
			change(m)
		}
	})
}

// floor is a world in which crashes forget counters, and clocks that are up to
// so many ticks apart are the floor of tokens.
func floor(clockError, crashes, attempts int) Model {
	return world(attempts, func(m *Model) {
		m.Floor, m.ClockError, m.Crashes, m.Quarantine = true, clockError, crashes, 2
		m.Rules = modelnode.Rules{MaxLead: tick}
	})
}
