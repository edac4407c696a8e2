//go:build !linux

package contend

import "syscall"

func dieWithUs() *syscall.SysProcAttr { return nil }
