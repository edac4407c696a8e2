//go:build race

package leasehold_test

// The race detector can follow some 8,000 goroutines.
const manyWaiters = 7_000

// raced reports whether the race detector is on, with which goroutines take more memory.
const raced = true
