//go:build mutants

package retain

var (
	retainRefused    = true
	resendUnanswered = true
	newRunEnds       = true
	skipUntold       = true
)

// Mechanisms are the switches of this build, by name. All are on at first.
var Mechanisms = map[string]*bool{
	"retain-refused":    &retainRefused,
	"resend-unanswered": &resendUnanswered,
	"new-run-ends":      &newRunEnds,
	"skip-untold":       &skipUntold,
}
