// Package mutants takes one mechanism after the other out of the project and
// demands that the simulator or the explorer notices each. A checker that finds
// nothing wrong says something only if it would have found it.
//
// It is all in the tests, and in the checkers' build alone:
//
//	go test -tags mutants ./internal/proof/mutants -v [-mutant NAME] [-most SEEDS]
package mutants
