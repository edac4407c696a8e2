//go:build !mutants

package retain

// The mechanisms that the package's promises rest on. The checkers' build makes them
// variables, to show that each is needed; here they are constants.
const (
	// retainRefused: an error reply is no execution.
	retainRefused = true
	// resendUnanswered: what a broken connection has not answered is sent again.
	resendUnanswered = true
	// newRunEnds: what a server has that was restarted ends a TTL after the last
	// request was sent to its old run.
	newRunEnds = true
	// skipUntold: nothing is retained of a lease that the server was never told of.
	skipUntold = true
)
