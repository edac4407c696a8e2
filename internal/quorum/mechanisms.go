//go:build !mutants

package quorum

// The mechanisms that safety rests on. The checker's build makes them
// variables, to show that each is needed; here they are constants.
const (
	// confirmToken: a token counts only when a majority stands at it.
	confirmToken = true
	// confirmOwned: only nodes where the lock is ours can confirm.
	confirmOwned = true
	// buryDoubtful: where an acquire may still arrive, its release leaves a
	// tombstone.
	buryDoubtful = true
	// overHalf: a majority is more than half.
	overHalf = true
	// cleanUpLost: what a lost attempt got is given back.
	cleanUpLost = true
	// doubtUnknown: what is not known to have failed may have happened.
	doubtUnknown = true
	// heal: a majority that has the lease gives it to nodes that lost it.
	heal = true
	// placeInTime: what a node granted counts while it certainly lasts, from when
	// the request left that it answers.
	placeInTime = true
	// buryRepeated: where an acquire may still arrive that was sent before another,
	// a release leaves a tombstone whatever it finds.
	buryRepeated = true
	// giveWay: of several who have a part of the nodes, the later gives way.
	giveWay = true
	// freeOnMost: a release is over when a majority is without the lease.
	freeOnMost = true
)
