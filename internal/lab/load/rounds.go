package load

import (
	"cmp"
	"slices"
	"time"
)

// Summary combines several runs with the same number of goroutines: it has the
// median of each figure. Figures per operation are those of the runs with at
// least one operation.
type Summary struct {
	Goroutines           int
	Rounds               int
	Operations, Errors   uint64 // of all runs together
	Err                  error  // the first
	PerSecond            float64
	LockP50, LockP99     time.Duration
	UnlockP50, UnlockP99 time.Duration
	CPU                  time.Duration // per operation
	Allocs               float64       // per operation
}

// Summarize returns the medians of runs with one number of goroutines.
func Summarize(runs []Result) Summary {
	s := Summary{Rounds: len(runs)}
	var some []Result
	for _, r := range runs {
		s.Goroutines = r.Goroutines
		s.Operations += r.Operations
		s.Errors += r.Errors
		s.Err = cmp.Or(s.Err, r.Err)
		if r.Operations > 0 {
			some = append(some, r)
		}
	}
	s.PerSecond = medianOf(runs, func(r Result) float64 { return r.PerSecond })
	quantile := func(of func(*Result) *Histogram, q float64) time.Duration {
		return medianOf(some, func(r Result) time.Duration { return of(&r).Quantile(q) })
	}
	lock := func(r *Result) *Histogram { return &r.Lock }
	unlock := func(r *Result) *Histogram { return &r.Unlock }
	s.LockP50, s.LockP99 = quantile(lock, 0.5), quantile(lock, 0.99)
	s.UnlockP50, s.UnlockP99 = quantile(unlock, 0.5), quantile(unlock, 0.99)
	s.CPU = time.Duration(medianOf(some, func(r Result) float64 { return r.PerOperation(float64(r.CPU)) }))
	s.Allocs = medianOf(some, func(r Result) float64 { return r.PerOperation(float64(r.Allocs)) })
	return s
}

func medianOf[T any, N cmp.Ordered](all []T, figure func(T) N) N {
	values := make([]N, len(all))
	for i, r := range all {
		values[i] = figure(r)
	}
	return Median(values)
}

// Median returns the value in the middle, or the smaller of the two, or zero if there are no
// values. It sorts values.
func Median[N cmp.Ordered](values []N) N {
	if len(values) == 0 {
		var zero N
		return zero
	}
	slices.Sort(values)
	return values[(len(values)-1)/2]
}
