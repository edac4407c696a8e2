package sigaction

import "syscall"

// furtherSignals returns the signals that only Linux has, or has under these numbers. They
// include the real-time signals, except the first three, which the system library uses.
func furtherSignals() []syscall.Signal {
	signals := []syscall.Signal{syscall.SIGPWR, syscall.SIGSTKFLT}
	for n := syscall.Signal(35); n <= 64; n++ {
		signals = append(signals, n)
	}
	return signals
}
