//go:build !linux

package clock

import "time"

// CountsSuspend says whether System goes on counting while the machine sleeps.
const CountsSuspend = false

var processStart = time.Now()

// systemNow never returns the zero Instant, which means "never set".
func systemNow() Instant { return Instant(time.Since(processStart)) + 1 }
