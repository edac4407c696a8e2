//go:build !linux

package serve

import "syscall"

// endsUnacknowledged leaves connections as the system has them.
func endsUnacknowledged(string, string, syscall.RawConn) error { return nil }
