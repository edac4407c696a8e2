//go:build !mutants

package queues

// Switch makes the queues run without the mechanism off, if it is not empty, and with all
// others. It reports whether it could: only the checkers' build can switch anything off.
func Switch(off string) bool { return off == "" }
