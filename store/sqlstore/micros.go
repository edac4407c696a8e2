package sqlstore

import "time"

// micros returns d in microseconds, rounded up.
func micros(d time.Duration) int64 {
	n := int64(d / time.Microsecond)
	if d%time.Microsecond > 0 {
		n++
	}
	return n
}

// duration returns a number of microseconds as a duration.
func duration(us int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Microsecond)
	return time.Duration(max(-most, min(us, most))) * time.Microsecond
}
