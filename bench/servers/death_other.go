//go:build !linux

package servers

import "syscall"

func dieWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
