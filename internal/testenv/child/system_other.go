//go:build !linux

package child

import "syscall"

func sysProcAttr() *syscall.SysProcAttr { return nil }

// standsStill cannot be asked here in a portable way.
func standsStill(int) bool { return true }
