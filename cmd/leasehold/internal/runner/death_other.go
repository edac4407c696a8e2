//go:build unix && !linux

package runner

import "syscall"

// dieWithParent: there is no such thing here. When we are killed by SIGKILL the
// command goes on, and its lock ends with the TTL.
func dieWithParent(*syscall.SysProcAttr) {}

// adoptOrphans is not available on this system; see groupAlive.
func adoptOrphans() {}
