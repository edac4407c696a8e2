//go:build unix && !linux

package runner

import "syscall"

func furtherSignals() []syscall.Signal { return nil }
