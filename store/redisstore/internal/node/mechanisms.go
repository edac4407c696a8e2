//go:build !mutants

package node

// Mechanisms that the promises rest on. The checkers' build makes them
// variables, to show that each is needed; here they are constants.
const (
	// MarksLooked: a new connection begins with a look whether the server is the one
	// that its mark speaks of.
	MarksLooked = true
	// ClocksWatched: a server whose clock has jumped does not count for a while.
	ClocksWatched = true
	// pushesStamped: a lock that was handed over counts from when the request left
	// that it answers, not from when that is heard.
	pushesStamped = true
	// missedAsked: after a connection broke, all waiters ask again.
	missedAsked = true
	// releasesRetained: a release that a server did not execute is sent again.
	releasesRetained = true
	// retainedIsPlain: a release that is sent later ends the grant that it names and its
	// place, and takes no new place.
	retainedIsPlain = true
)
