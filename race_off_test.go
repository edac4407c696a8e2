//go:build !race

package leasehold_test

const manyWaiters = 10_000

const raced = false
