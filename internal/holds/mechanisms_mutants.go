//go:build mutants

package holds

var (
	renewalFromStart = true
	lossTold         = true
	errLooks         = true
	releaseDetached  = true
	leastHold        = true
	breaksPushed     = true
)

// Mechanisms are the switches of this build, by name. All are on at first. No client may be in
// use while one is changed.
var Mechanisms = map[string]*bool{
	"renewal-from-start": &renewalFromStart,
	"loss-told":          &lossTold,
	"err-looks":          &errLooks,
	"release-detached":   &releaseDetached,
	"least-hold":         &leastHold,
}

// BreakMechanisms are the switches that only unit tests drive.
var BreakMechanisms = map[string]*bool{"breaks-pushed": &breaksPushed}
