//go:build !mutants

package leasehold

// These are mechanisms that the guarantees rest on, besides those of internal/holds and
// internal/waits. Here they are constants. The checkers' build makes them variables, to show that
// each is needed.
const (
	// ownerPerAttempt: every attempt has an owner value of its own.
	ownerPerAttempt = true
	// noticeGiven: holders are notified before validity ends.
	noticeGiven = true
	// renewing: leases are renewed.
	renewing = true
	// longestHold: MaxHold is kept.
	longestHold = true
	// setsOrdered: locks that are acquired together are acquired in one order.
	setsOrdered = true
	// tickRecorded: a tick is recorded as run before the run begins.
	tickRecorded = true
	// lateRunRefused: a tick that was over when it was recorded is not run.
	lateRunRefused = true
	// candidacyRepeated: a candidate that lost or failed contends again.
	candidacyRepeated = true
)
