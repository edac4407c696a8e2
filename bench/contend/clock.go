package contend

import "time"

// The machine's clock is read once, as closely together with this process's own
// as can be, and then counted on with that, which takes no system call. What
// two processes differ by is less than the time between the two readings, some
// hundred nanoseconds: far less than any lock takes to change hands.
var (
	origin = time.Now()
	offset = calibrate()
)

// readings are how many pairs the closest is taken from.
const readings = 200

func calibrate() int64 {
	var at, closest int64
	for i := range readings {
		before := time.Since(origin)
		machine := machineClock()
		after := time.Since(origin)
		if apart := int64(after - before); i == 0 || apart < closest {
			closest, at = apart, machine-int64(before+after)/2
		}
	}
	return at
}

// Now is the time of the machine's clock, the same in all its processes.
func Now() int64 { return offset + int64(time.Since(origin)) }

// until is how long it is to a point in time.
func until(at int64) time.Duration { return time.Duration(at - Now()) }
