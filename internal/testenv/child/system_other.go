//go:build !linux

package child

import "syscall"

func bind(attr *syscall.SysProcAttr) *syscall.SysProcAttr { return attr }

// standsStill cannot be implemented portably.
func standsStill(int) bool { return true }
