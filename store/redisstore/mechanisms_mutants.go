//go:build mutants

package redisstore

import "github.com/leasehold-dev/leasehold/store/redisstore/internal/script"

var (
	marksLooked      = true
	clocksWatched    = true
	pushesStamped    = true
	missedAsked      = true
	retainedIsPlain  = true
	releasesRetained = true
)

// Mechanisms of this package, by name: setting one to false takes it out.
var Mechanisms = map[string]*bool{
	"look-at-mark":        &marksLooked,
	"clock-watch":         &clocksWatched,
	"error-says-nothing":  &script.ErrorsSayNothing,
	"stamp-of-push":       &pushesStamped,
	"ask-what-was-missed": &missedAsked,
	"releases-retained":   &releasesRetained,
	"retained-is-plain":   &retainedIsPlain,
}
