//go:build mutants

package node

var (
	MarksLooked      = true
	ClocksWatched    = true
	pushesStamped    = true
	missedAsked      = true
	retainedIsPlain  = true
	releasesRetained = true
)

// Mechanisms of this package, by name: setting one to false takes it out.
var Mechanisms = map[string]*bool{
	"look-at-mark":        &MarksLooked,
	"clock-watch":         &ClocksWatched,
	"stamp-of-push":       &pushesStamped,
	"ask-what-was-missed": &missedAsked,
	"releases-retained":   &releasesRetained,
	"retained-is-plain":   &retainedIsPlain,
}
