package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold/bench/locks"
)

// Chart is a picture of a run.
type Chart struct {
	File string
	draw chart
}

// PNG draws the chart.
func (c Chart) PNG() ([]byte, error) { return c.draw.png() }

// Charts returns the pictures of what was measured: locks that nobody else wants, one
// that all want, and one that all wait for while nothing happens.
func Charts(r *Run) []Chart {
	var all []Chart
	if c := uncontended(r); len(c.series) > 0 {
		all = append(all, Chart{"uncontended.png", c})
	}
	if c := contended(r); len(c.series) > 0 {
		all = append(all, Chart{"contended.png", c})
	}
	if c := idle(r); len(c.series) > 0 {
		all = append(all, Chart{"idle.png", c})
	}
	return all
}

func uncontended(r *Run) chart {
	m := mediansOf(r)
	numbers := m.goroutines(Healthy)
	c := chart{
		title: "Lock and unlock, each goroutine with a lock of its own", unit: "operations per second", kinds: locks.All,
		found: func(k locks.Kind, i int) (float64, bool) {
			row, ok := m.rows[key{Healthy, k.Name, numbers[i]}]
			return row.PerSecond, ok && k.Benchmark == "" // how Leasehold's messages are made is not for its users
		},
		rounds: "Medians", cpus: cpusOf(r),
	}
	for _, n := range numbers {
		c.series = append(c.series, plural(n))
	}
	return c
}

func contended(r *Run) chart {
	medians := contestedOf(r)
	all := sizes(medians, Contended)
	c := chart{
		title: "One lock that all processes want", unit: "changes of holder per second", kinds: locks.Contended,
		found: func(k locks.Kind, i int) (float64, bool) {
			m, ok := medians[contestKey{Contended, k.Name, all[i][0], all[i][1]}]
			return m.handOffs, ok
		},
		rounds: "Medians", cpus: cpusOf(r),
	}
	for _, size := range all {
		c.series = append(c.series, contendersOf(size[0], size[1]))
	}
	return c
}

func idle(r *Run) chart {
	medians := contestedOf(r)
	all := sizes(medians, Waiting)
	c := chart{
		title: "Waiting for a lock that another process keeps", unit: "commands and keep-alives per second", fewer: true,
		kinds: slices.DeleteFunc(slices.Clone(locks.Contended), func(k locks.Kind) bool { return !k.Counted() }),
		found: func(k locks.Kind, i int) (float64, bool) {
			m, ok := medians[contestKey{Waiting, k.Name, all[i][0], all[i][1]}]
			return m.sent + m.keptAlive, ok
		},
		rounds: "One round", cpus: cpusOf(r),
	}
	for _, size := range all {
		c.series = append(c.series, contendersOf(size[0], size[1]))
	}
	return c
}

func cpusOf(r *Run) string { return fmt.Sprintf("%d x %s", r.Machine.Count, r.Machine.CPU) }

// shortLabel is the label without what the title of its group says.
func shortLabel(k locks.Kind) string {
	for _, part := range []string{", 1 node", ", 5 nodes", ", 1 server"} {
		if before, after, ok := strings.Cut(k.Label, part); ok {
			return before + after
		}
	}
	return k.Label
}
