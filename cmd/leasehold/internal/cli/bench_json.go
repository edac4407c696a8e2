package cli

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/lab/load"
	"github.com/leasehold-dev/leasehold/store"
)

// benchJSON is the output of "bench --json", as described in its help.
type benchJSON struct {
	Engine  string            `json:"engine"`
	Nodes   int               `json:"nodes"`
	Quorum  int               `json:"quorum"`
	TTL     int64             `json:"ttl_ms"`
	For     int64             `json:"for_ms"`
	Results []benchResultJSON `json:"results"`
}

type benchResultJSON struct {
	Goroutines int     `json:"goroutines"`
	Rounds     int     `json:"rounds"`
	Operations uint64  `json:"operations"`
	Errors     uint64  `json:"errors"`
	Error      string  `json:"error,omitempty"`
	PerSecond  float64 `json:"per_second"`
	LockP50    float64 `json:"lock_p50_us"`
	LockP99    float64 `json:"lock_p99_us"`
	UnlockP50  float64 `json:"unlock_p50_us"`
	UnlockP99  float64 `json:"unlock_p99_us"`
	ClientCPU  float64 `json:"client_cpu_us"`
	Allocs     float64 `json:"allocs"`
}

func benchJSONOf(caps store.Caps, o benchFlags, results []load.Summary) benchJSON {
	j := benchJSON{
		Engine: caps.Engine, Nodes: caps.Nodes, Quorum: caps.Quorum,
		TTL: o.ttl.Milliseconds(), For: o.dur.Milliseconds(), Results: []benchResultJSON{},
	}
	for _, r := range results {
		one := benchResultJSON{
			Goroutines: r.Goroutines, Rounds: r.Rounds, Operations: r.Operations, Errors: r.Errors, PerSecond: r.PerSecond,
			LockP50: micros(r.LockP50), LockP99: micros(r.LockP99), UnlockP50: micros(r.UnlockP50), UnlockP99: micros(r.UnlockP99),
			ClientCPU: micros(r.CPU), Allocs: r.Allocs,
		}
		if r.Err != nil {
			one.Error = safe(r.Err.Error())
		}
		j.Results = append(j.Results, one)
	}
	return j
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
