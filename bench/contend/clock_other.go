//go:build !linux

package contend

import "time"

// machineClock must not be set while a measurement runs.
func machineClock() int64 { return time.Now().UnixNano() }
