//go:build mutants

package leasefsm

var (
	renewInTime = true
	fromStart   = true
)

// Mechanisms are the switches of this build, by name. All are on at first.
// Nobody may be stepping a lease while one is changed.
var Mechanisms = map[string]*bool{
	"renew-in-time": &renewInTime,
	"from-start":    &fromStart,
}
