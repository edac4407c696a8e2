package runner

import "syscall"

// furtherSignals are those that only Linux has, or has under these numbers: the
// real-time signals among them, but for the first three, which are the system
// library's.
func furtherSignals() []syscall.Signal {
	signals := []syscall.Signal{syscall.SIGPWR, syscall.SIGSTKFLT}
	for n := syscall.Signal(35); n <= 64; n++ {
		signals = append(signals, n)
	}
	return signals
}
