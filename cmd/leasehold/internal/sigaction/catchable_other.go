//go:build unix && !linux

package sigaction

import "syscall"

func furtherSignals() []syscall.Signal { return nil }
