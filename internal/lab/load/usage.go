package load

import (
	"runtime"
	"time"
)

// usage is what this process has used since it started.
type usage struct {
	cpu           time.Duration
	allocs, bytes uint64
}

func usageNow() usage {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{CPUTime(), m.Mallocs, m.TotalAlloc}
}

func (u usage) since(before usage) (cpu time.Duration, allocs, bytes uint64) {
	return u.cpu - before.cpu, u.allocs - before.allocs, u.bytes - before.bytes
}
