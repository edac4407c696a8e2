//go:build mutants

package leasefsm

var (
	renewInTime    = true
	fromStart      = true
	passWhileValid = true
)

// Mechanisms are the switches of this build, by name. All are on at first.
// Nobody may be stepping a lease while one is changed.
var Mechanisms = map[string]*bool{
	"renew-in-time": &renewInTime,
	"from-start":    &fromStart,
}

// WaitMechanisms are those of passing a lease on, which not every checker does.
var WaitMechanisms = map[string]*bool{
	"pass-while-valid": &passWhileValid,
}
