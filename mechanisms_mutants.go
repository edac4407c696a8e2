//go:build mutants

package leasehold

var (
	ownerPerAttempt  = true
	renewalFromStart = true
	noticeGiven      = true
	lossTold         = true
	errLooks         = true
	renewing         = true
	releaseDetached  = true
	leastHold        = true
	longestHold      = true
	grantFromSince   = true

	ownPlaces         = true
	setsOrdered       = true
	tickRecorded      = true
	lateRunRefused    = true
	candidacyRepeated = true
	breaksPushed      = true
)

// Mechanisms are the switches of this build, by name. All are on at first.
// Nobody may be using a Client while one is changed.
var Mechanisms = map[string]*bool{
	"owner-per-attempt":  &ownerPerAttempt,
	"renewal-from-start": &renewalFromStart,
	"notice":             &noticeGiven,
	"loss-told":          &lossTold,
	"err-looks":          &errLooks,
	"renewing":           &renewing,
	"release-detached":   &releaseDetached,
	"least-hold":         &leastHold,
	"longest-hold":       &longestHold,
}

// WaitMechanisms are the switches of what waiting adds: of no account to a
// checker whose store keeps no queue.
var WaitMechanisms = map[string]*bool{
	"grant-from-since": &grantFromSince,
}

// KindMechanisms are the switches of semaphores, read-write locks and what is built on
// locks. No checker but the unit tests drives these.
var KindMechanisms = map[string]*bool{
	"own-places":         &ownPlaces,
	"sets-ordered":       &setsOrdered,
	"tick-recorded":      &tickRecorded,
	"late-run-refused":   &lateRunRefused,
	"candidacy-repeated": &candidacyRepeated,
	"breaks-pushed":      &breaksPushed,
}
