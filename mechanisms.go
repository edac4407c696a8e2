//go:build !mutants

package leasehold

// These are the mechanisms that the guarantees rest on. Here they are constants. The
// checkers' build makes them variables, to show that each is needed.
const (
	// ownerPerAttempt: every attempt has an owner value of its own.
	ownerPerAttempt = true
	// renewalFromStart: a renewal counts from before its request left.
	renewalFromStart = true
	// noticeGiven: holders are notified before validity ends.
	noticeGiven = true
	// lossTold: and they are notified by their context, not only when they ask.
	lossTold = true
	// errLooks: Lease.Err reads the clock as well.
	errLooks = true
	// renewing: leases are renewed.
	renewing = true
	// releaseDetached: the caller's context does not cut a release off.
	releaseDetached = true
	// leastHold, longestHold: MinHold and MaxHold are kept.
	leastHold   = true
	longestHold = true
	// grantFromSince: a grant that was waited for counts from when the request
	// that it answers left.
	grantFromSince = true
	// ownPlaces: each goroutine that waits for a lock that several can hold has a place
	// of its own in the store's queue.
	ownPlaces = true
	// setsOrdered: locks that are acquired together are acquired in one order.
	setsOrdered = true
	// tickRecorded: a tick is recorded as run before the run begins.
	tickRecorded = true
	// lateRunRefused: a tick that was over when it was recorded is not run.
	lateRunRefused = true
	// breaksPushed: a lease is renewed at once when the store says that it was broken.
	breaksPushed = true
	// candidacyRepeated: a candidate that lost or failed contends again.
	candidacyRepeated = true
)
