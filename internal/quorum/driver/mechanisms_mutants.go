//go:build mutants

package driver

var (
	declineUnwanted   = true
	undoOwn           = true
	discountEach      = true
	uncountedRenewals = true
)

// Mechanisms are the switches of this build, by name. All are on at first.
// Nobody may be using a Driver while one is changed.
var Mechanisms = map[string]*bool{
	"decline-unwanted":   &declineUnwanted,
	"undo-own":           &undoOwn,
	"discount-each":      &discountEach,
	"uncounted-renewals": &uncountedRenewals,
}
