//go:build !mutants

package script

// Mechanisms that the promises rest on. The checkers' build makes them
// variables, to show that each is needed; here they are constants.
const (
	// ErrorsSayNothing is set if a server that answers with an error may have the lease.
	ErrorsSayNothing = true
)
