// Package mutants removes one mechanism of the project after the other, and requires
// that the simulator or an explorer notices each. A checker that finds nothing wrong
// proves something only if it would find a mistake.
//
// All of it is in the tests, and only in the checkers' build:
//
//	go test -tags mutants ./internal/proof/mutants -v [-mutant NAME]
//
// For each mutant one checker is named, or several: for the simulator, and for its check of the
// steps of the proof, a script and a seed in which it shows, for an explorer a row. Mutants that only show among goroutines of
// one process, or in a pure function, are left to unit tests: TestMechanismsAreNeeded of their
// packages.
package mutants
