//go:build !mutants

package driver

// The mechanisms of this package that promises rest on. The checkers' build makes them
// variables, to show that each is needed; here they are constants.
const (
	// declineUnwanted: a lock that is handed to a waiter that has left is released.
	declineUnwanted = true
	// undoOwn: an attempt that fails cleans up no grant but its own.
	undoOwn = true
	// discountEach: a node whose clock jumped is discounted however many others jumped.
	discountEach = true
	// uncountedRenewals: a lease that a node granted while it was discounted is not renewed by it.
	uncountedRenewals = true
)
