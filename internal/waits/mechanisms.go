//go:build !mutants

package waits

// These are mechanisms that the guarantees rest on. Here they are constants. The
// checkers' build makes them variables, to show that each is needed.
const (
	// grantFromSince: a grant that was waited for counts from when the request
	// that it answers left.
	grantFromSince = true
	// ownPlaces: each goroutine that waits for a lock that several can hold has a place
	// of its own in the store's queue.
	ownPlaces = true
)
