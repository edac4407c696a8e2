//go:build !mutants

package quorum

// The mechanisms that safety rests on. The checker's build makes them
// variables, to show that each is needed; here they are constants.
const (
	// confirmToken: a token counts only when a majority stands at it.
	confirmToken = true
	// confirmOwned: only nodes where the lock is ours can confirm.
	confirmOwned = true
	// buryDoubtful: if an acquire may still arrive, its release leaves a tombstone.
	buryDoubtful = true
	// overHalf: a majority is more than half.
	overHalf = true
	// cleanUpLost: a lost attempt releases what it was granted.
	cleanUpLost = true
	// doubtUnknown: a request of unknown outcome may have been applied.
	doubtUnknown = true
	// heal: a majority that has the lease gives it to nodes that lost it.
	heal = true
	// placeInTime: a grant counts only while it certainly lasts, from the departure of
	// the request that it answers.
	placeInTime = true
	// buryRepeated: if an earlier one of several acquires may still arrive, the release
	// leaves a tombstone whatever it finds.
	buryRepeated = true
	// giveWay: of several waiters with a part of the nodes, the later gives way.
	giveWay = true
	// freeOnMost: a release is over when a majority is without the lease.
	freeOnMost = true
	// agreeOnSlots: of a semaphore, a majority must grant the same slots.
	agreeOnSlots = true
)
