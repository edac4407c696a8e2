//go:build mutants

package waits

var (
	grantFromSince = true
	ownPlaces      = true
)

// Mechanisms are the switches of this build, by name. All are on at first. Nobody may be waiting
// while one is changed.
var Mechanisms = map[string]*bool{"grant-from-since": &grantFromSince}

// KindMechanisms are the switches of locks that several can hold. Only unit tests drive these.
var KindMechanisms = map[string]*bool{"own-places": &ownPlaces}
