//go:build mutants

package leasefsm

var (
	renewInTime = true
	fromStart   = true
	boundHold   = true
)

// Mechanisms are the switches of this build, by name. All are on at first. No
// lease may be stepped while one is changed.
var Mechanisms = map[string]*bool{
	"renew-in-time": &renewInTime,
	"from-start":    &fromStart,
	"max-hold":      &boundHold,
}
