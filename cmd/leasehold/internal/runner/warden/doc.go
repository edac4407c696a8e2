// Package warden is what a runner's two helper processes do: the guard, which kills
// a command that outlives its runner, and the gate, which becomes the command once
// it is guarded. Both are the runner's own program, started once more.
//
// A program that imports this package becomes a helper, and never runs its main
// function, when its name is that of one. This happens in an init function, and
// the package imports next to nothing: most packages of the program (its database,
// its TLS) are then not initialized at all. That takes several times as long as
// everything a helper does, and each command waits for it.
package warden
