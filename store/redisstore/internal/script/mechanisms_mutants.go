//go:build mutants

package script

// ErrorsSayNothing can be set to false, to show that it is needed.
var ErrorsSayNothing = true
