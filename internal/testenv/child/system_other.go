//go:build !linux

package child

import "syscall"

func sysProcAttr() *syscall.SysProcAttr { return nil }

// standsStill cannot be implemented portably.
func standsStill(int) bool { return true }
