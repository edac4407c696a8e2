//go:build !mutants

package leasefsm

// The mechanisms that safety rests on. The checker's build makes them
// variables, to show that each is needed; here they are constants.
const (
	// renewInTime: a renewal counts only while the old validity is unexpired.
	renewInTime = true
	// fromStart: validity counts from before the request left.
	fromStart = true
	// boundHold: no renewal keeps a lease for longer than MaxHold.
	boundHold = true
)
