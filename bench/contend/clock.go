package contend

import "time"

// The machine's clock is read once, as close to a reading of this process's own clock
// as possible. From then on the process's clock counts, which takes no system call. Two
// processes differ by less than the time between two readings, some hundred
// nanoseconds, which is far less than a hand-off takes.
var (
	origin = time.Now()
	offset = calibrate()
)

// readings is the number of pairs of which the closest is taken.
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

// Now returns the time of the machine's clock, which is the same in all processes.
func Now() int64 { return offset + int64(time.Since(origin)) }

// until returns the time left until an instant.
func until(at int64) time.Duration { return time.Duration(at - Now()) }
