package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/bench/locks"
	"github.com/leasehold-dev/leasehold/internal/lab/load"
)

// key says which measurements are repetitions of each other.
type key struct {
	scenario, kind string
	goroutines     int
}

// medians are the medians over the rounds of a run.
type medians struct {
	rows map[key]load.Row
}

func mediansOf(r *Run) medians {
	groups := map[key][]Cell{}
	for _, c := range r.Cells {
		k := key{c.Scenario, c.Kind, c.Goroutines}
		groups[k] = append(groups[k], c)
	}
	m := medians{map[key]load.Row{}}
	for k, cells := range groups {
		kind, _ := locks.Named(k.kind)
		row := load.Row{Name: cmp.Or(kind.Label, k.kind)}
		row.Goroutines, row.Rounds = k.goroutines, len(cells)
		var perSecond []float64
		for _, c := range cells {
			row.Operations += c.Operations
			row.Errors += c.Errors
			perSecond = append(perSecond, c.PerSecond)
		}
		row.PerSecond = load.Median(perSecond)
		duration := func(of func(Cell) time.Duration) time.Duration { return median(cells, of) }
		row.LockP50 = duration(func(c Cell) time.Duration { return c.Lock.P50 })
		row.LockP99 = duration(func(c Cell) time.Duration { return c.Lock.P99 })
		row.UnlockP50 = duration(func(c Cell) time.Duration { return c.Unlock.P50 })
		row.UnlockP99 = duration(func(c Cell) time.Duration { return c.Unlock.P99 })
		row.CPU = duration(func(c Cell) time.Duration { return c.ClientCPU / time.Duration(c.Operations) })
		row.ServerCPU = duration(func(c Cell) time.Duration { return c.ServerCPU / time.Duration(c.Operations) })
		row.Commands = median(cells, func(c Cell) float64 { return float64(c.Commands) / float64(c.Operations) })
		row.Allocs = median(cells, func(c Cell) float64 { return float64(c.Allocs) / float64(c.Operations) })
		m.rows[k] = row
	}
	return m
}

// median is over the cells with an operation: only they have durations.
func median[N cmp.Ordered](cells []Cell, of func(Cell) N) N {
	var values []N
	for _, c := range cells {
		if c.Operations > 0 {
			values = append(values, of(c))
		}
	}
	return load.Median(values)
}

// table are the rows of a scenario with one number of goroutines, in the order
// of the implementations; those that satisfy which.
func (m medians) table(scenario string, goroutines int, which func(locks.Kind) bool) []load.Row {
	var rows []load.Row
	for _, k := range locks.All {
		if row, ok := m.rows[key{scenario, k.Name, goroutines}]; ok && which(k) {
			row.Goroutines = 0 // the title of the table has it
			rows = append(rows, row)
		}
	}
	return rows
}

// goroutines are the numbers that were measured in a scenario.
func (m medians) goroutines(scenario string) []int {
	var all []int
	for k := range m.rows {
		if k.scenario == scenario {
			all = append(all, k.goroutines)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func anyKind(locks.Kind) bool { return true }
