//go:build !mutants

package holds

// These are mechanisms that the guarantees rest on. Here they are constants. The
// checkers' build makes them variables, to show that each is needed.
const (
	// renewalFromStart: a renewal counts from before its request left.
	renewalFromStart = true
	// lossTold: holders are notified by their context, not only when they ask.
	lossTold = true
	// errLooks: Lease.Err reads the clock as well.
	errLooks = true
	// releaseDetached: the caller's context does not cut a release off.
	releaseDetached = true
	// leastHold: MinHold is kept.
	leastHold = true
	// breaksPushed: a lease is renewed at once when the store says that it was broken.
	breaksPushed = true
)
