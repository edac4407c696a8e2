package sigaction

import "syscall"

// Die returns: no signal can end a program.
func Die(syscall.Signal, bool) {}

// Tell returns false: there are no groups of processes.
func Tell(syscall.Signal) bool { return false }

// Ignored returns nil.
func Ignored() []syscall.Signal { return nil }

// Catchable are the signals that can be caught.
func Catchable() []syscall.Signal { return []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} }
