//go:build mutants

package leasehold

var (
	ownerPerAttempt = true
	noticeGiven     = true
	renewing        = true
	longestHold     = true

	setsOrdered       = true
	tickRecorded      = true
	lateRunRefused    = true
	candidacyRepeated = true
)

// Mechanisms are the switches of this build, by name. All are on at first.
// Nobody may be using a Client while one is changed.
var Mechanisms = map[string]*bool{
	"owner-per-attempt": &ownerPerAttempt,
	"notice":            &noticeGiven,
	"renewing":          &renewing,
	"longest-hold":      &longestHold,
}

// UseMechanisms are the switches of what is built on locks. No checker but the unit tests drives
// these.
var UseMechanisms = map[string]*bool{
	"sets-ordered":       &setsOrdered,
	"tick-recorded":      &tickRecorded,
	"late-run-refused":   &lateRunRefused,
	"candidacy-repeated": &candidacyRepeated,
}
