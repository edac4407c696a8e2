package cell

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/lab/load"
)

// Figures are the raw results of one measurement. Times are in nanoseconds; CPU,
// commands and allocations are of all operations together.
type Figures struct {
	Goroutines int
	Elapsed    time.Duration
	Operations uint64
	PerSecond  float64
	Errors     uint64
	FirstError string `json:",omitempty"`
	Lock       Quantiles
	Unlock     Quantiles
	ClientCPU  time.Duration
	ServerCPU  time.Duration // all servers together
	Commands   uint64        // all servers together, those of scripts included
	Allocs     uint64
	Bytes      uint64
}

// Quantiles of a distribution of durations.
type Quantiles struct {
	P50, P90, P99, P999, Max time.Duration
}

func quantilesOf(h *load.Histogram) Quantiles {
	return Quantiles{h.Quantile(0.5), h.Quantile(0.9), h.Quantile(0.99), h.Quantile(0.999), h.Quantile(1)}
}

func figuresOf(r load.Result, s serverUse) Figures {
	f := Figures{
		Goroutines: r.Goroutines, Elapsed: r.Elapsed, Operations: r.Operations, PerSecond: r.PerSecond, Errors: r.Errors,
		Lock: quantilesOf(&r.Lock), Unlock: quantilesOf(&r.Unlock),
		ClientCPU: r.CPU, ServerCPU: s.cpu, Commands: s.commands, Allocs: r.Allocs, Bytes: r.Bytes,
	}
	if r.Err != nil {
		f.FirstError = r.Err.Error()
	}
	return f
}
