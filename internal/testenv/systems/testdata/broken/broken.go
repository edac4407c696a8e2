// Package broken compiles on one system only.
package broken

// Large needs 64 bits.
var Large int = 1 << 40 >> amount

const amount = 0
