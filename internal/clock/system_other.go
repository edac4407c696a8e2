//go:build !linux

package clock

import "time"

// CountsSuspend reports whether System goes on while the machine is suspended.
const CountsSuspend = false

var processStart = time.Now()

// systemNow never returns the zero Instant, which means "never set".
func systemNow() Instant { return Instant(time.Since(processStart)) + 1 }
