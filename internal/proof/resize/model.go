// Package resize searches every interleaving of small worlds in which the number of permits
// of a semaphore over three independent nodes changes while permits are held. What a node
// does is internal/rule. internal/quorum has the resize itself, and counts renewals.
//
// The protocol: a resize takes the seat at all nodes, and then all nodes set the number. It has
// worked if all have set it within a node timeout.
//
//   - A node keeps the number for the longest TTL and a node timeout more, even if nobody uses the
//     lock. An attempt that was granted something before is over by then.
//   - A node grants nothing while it has a lease with a slot that there is no permit for any
//     more, and does not take such a lease back.
//   - A renewal counts only nodes that have a number in common, since a late request of the
//     lease may have brought an earlier number to a node that had none. A heal carries a number
//     that the nodes have in common.
//   - For a while after a resize has set the number, the one before is the node's for renewals,
//     too. So a lease that is at two nodes is renewed when only one of them has set the number.
//     A request for the seat brings a node no number, since it may arrive late.
//
// The promise: once a resize has worked, as long as the lock is in use, and until another resize
// from the earlier number begins, no attempt that begins later is granted a permit by that
// number, or one that is too many. Until it has worked there are never more holders than the larger of the two numbers. A resize that failed, or
// that ended in the middle, may have worked, but works no later than the TTL of its seat. It leaves
// nodes with different numbers, and a lease at no more than a majority may find no common one:
// it ends, and its holder knows in time, unless the resize is repeated before.
//
// A renewal cannot bring the number to a node, as it brings a token: an attempt may have been
// granted something there, by the number before, and counts that. So numbers need no versions,
// and no answer to an attempt tells more than today's.
package resize

// Limits of a Model, which depend on the size of a state.
const (
	maxNodes    = 3
	maxLeases   = 3
	maxResizers = 2
)

// Model is a world to search. Each attempt asks two nodes, since its other requests may be
// lost; so does each renewal. Requests arrive in any order, at any time or never.
type Model struct {
	TTL uint8 // of leases, in ticks
	// Seat is for how long a resize has the seat at a node; 0: for the TTL.
	Seat uint8
	// Keep is for how long a node keeps a number that nobody uses.
	Keep uint8
	// Crashes of nodes in all. A node that crashes forgets the lock, and grants nothing for
	// Quarantine ticks.
	Crashes, Quarantine uint8
	// Asks are the numbers that the attempts ask by; 0: there is no such attempt.
	Asks [maxLeases]uint8
	// Held are the nodes (a bit each) on which an attempt has its lease at the beginning, and Slots
	// which slot.
	Held, Slots [maxLeases]uint8
	// Renewals of each lease, at most.
	Renewals uint8
	// Resizes are the resizes: from which number to which. Seated: the first has its seats at the
	// beginning.
	Resizes [maxResizers][2]uint8
	Seated  bool
	// Told: at the beginning the first resize has worked. The first attempt's acquire by the
	// number before is under way to the nodes that do not have its lease, and a heal.
	Told bool
	// Late: the second resize has failed before the beginning, and its requests for the seat are
	// under way to the same nodes.
	Late bool
	// Check are the properties that are checked besides those of grants.
	Check []Property

	Off Off
}

// Off are the mechanisms that are switched off.
type Off struct {
	Seat   bool // a node sets the number for a resize without the seat
	Kept   bool // a node keeps no number that nobody uses
	Fits   bool // a node grants slots though it has one too many
	Healed bool // a lease with a slot too many is healed
	Common bool // a renewal counts nodes whatever their numbers are
	Taken  bool // a seat that was only taken brings both numbers for renewals
	Joint  bool // a node has only its own number for renewals
	All    bool // a majority that has set the number is enough
	Timely bool // a resize waits for its answers for ever
}

// Property is what must hold in every state; the empty one is none.
type Property string

// The properties.
const (
	Slots   Property = "SLOT held twice"
	Numbers Property = "GRANTED by an earlier number"
	Holders Property = "TOO MANY holders"
	// Ended: no resize works later than the TTL of its seat.
	Ended Property = "RESIZED after the end"
	// Renewed: no lease is refused a renewal by its nodes while a resize may work.
	Renewed Property = "NOT RENEWED"
	// Split: once two resizes have worked, all nodes have the number of one.
	Split Property = "SPLIT between two resizes"
)
