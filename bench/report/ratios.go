package report

import (
	"fmt"
	"strings"

	"github.com/leasehold-dev/leasehold/bench/locks"
	"github.com/leasehold-dev/leasehold/internal/lab/load"
)

// ratio compares Leasehold with something measured in the same run. Ratios
// hold on other machines better than operations per second do.
type ratio struct {
	what string
	aim  map[int]float64 // our target, by number of goroutines
	most bool            // the aim is an upper bound; otherwise a lower one
	of   func(m medians, scenario string, goroutines int) (float64, bool)
}

// perSecond is our throughput divided by the best of others.
func perSecond(ours string, others func(locks.Kind) bool) func(medians, string, int) (float64, bool) {
	return func(m medians, scenario string, n int) (float64, bool) {
		us, ok := m.rows[key{scenario, ours, n}]
		best := best(m, scenario, n, others, func(r load.Row) float64 { return r.PerSecond })
		return us.PerSecond / best, ok && best > 0
	}
}

// cost is the cost of an operation with the cheapest of others, divided by ours.
func cost(ours string, others func(locks.Kind) bool, of func(load.Row) float64) func(medians, string, int) (float64, bool) {
	return func(m medians, scenario string, n int) (float64, bool) {
		us, ok := m.rows[key{scenario, ours, n}]
		inverse := best(m, scenario, n, others, func(r load.Row) float64 {
			if of(r) <= 0 {
				return 0
			}
			return 1 / of(r)
		})
		return 1 / inverse / of(us), ok && inverse > 0 && of(us) > 0
	}
}

// timesServerCPU is how many times the server's cost of an operation with the other it is with
// one of ours.
func timesServerCPU(ours, other string) func(medians, string, int) (float64, bool) {
	return func(m medians, scenario string, n int) (float64, bool) {
		x, ok := cost(ours, named(other), serverCPU)(m, scenario, n)
		return 1 / x, ok
	}
}

// best returns the largest figure of the kinds that which selects.
func best(m medians, scenario string, n int, which func(locks.Kind) bool, figure func(load.Row) float64) float64 {
	most := 0.0
	for _, k := range locks.All {
		if r, ok := m.rows[key{scenario, k.Name, n}]; ok && which(k) {
			most = max(most, figure(r))
		}
	}
	return most
}

func peers(nodes int) func(locks.Kind) bool {
	return func(k locks.Kind) bool { return k.Role == locks.Peer && k.Engine == locks.Redis && k.Nodes == nodes }
}

func named(name string) func(locks.Kind) bool {
	return func(k locks.Kind) bool { return k.Name == name }
}

func clientCPU(r load.Row) float64 { return float64(r.CPU) }
func serverCPU(r load.Row) float64 { return float64(r.ServerCPU) }

func by(one, sixteen, many float64) map[int]float64 {
	return map[int]float64{1: one, 16: sixteen, 256: many}
}

// ratios are the figures to watch, all with Leasehold's default settings.
var ratios = []ratio{
	{what: "5 nodes: operations per second, Leasehold / best redsync", aim: by(1.5, 3, 5), of: perSecond("leasehold-5", peers(5))},
	{what: "5 nodes: operations per second, Leasehold / by hand with a counter", aim: by(0.9, 0.9, 1), of: perSecond("leasehold-5", named("floor-token-5"))},
	{what: "5 nodes: operations per second, Leasehold / by hand with a counter, in lists", of: perSecond("leasehold-5", named("floor-lists-5"))},
	{what: "1 node: operations per second, Leasehold / best peer", aim: by(1, 1.3, 2.5), of: perSecond("leasehold-1", peers(1))},
	{what: "1 node: operations per second, Leasehold / by hand with a counter", of: perSecond("leasehold-1", named("floor-token-1"))},
	{what: "1 node: operations per second, Leasehold / by hand with a counter, in lists", of: perSecond("leasehold-1", named("floor-lists-1"))},
	// The most that is possible: the same commands, by hand, beside the same peers.
	{what: "5 nodes: operations per second, Leasehold's messages by hand / best redsync", of: perSecond("messages-5", peers(5))},
	{what: "5 nodes: operations per second, by hand with a counter / best redsync", of: perSecond("floor-token-5", peers(5))},
	{what: "5 nodes: operations per second, by hand with a counter, in lists / best redsync", of: perSecond("floor-lists-5", peers(5))},
	{what: "1 node: operations per second, Leasehold's messages by hand / best peer", of: perSecond("messages-1", peers(1))},
	{what: "1 node: operations per second, by hand with a counter / best peer", of: perSecond("floor-token-1", peers(1))},
	{what: "1 node: operations per second, by hand with a counter, in lists / best peer", of: perSecond("floor-lists-1", peers(1))},
	{what: "1 node: p50 of lock, Leasehold / best peer", aim: map[int]float64{1: 1.1}, most: true, of: func(m medians, scenario string, n int) (float64, bool) {
		x, ok := cost("leasehold-1", peers(1), func(r load.Row) float64 { return float64(r.LockP50) })(m, scenario, n)
		return 1 / x, ok
	}},
	{what: "1 node: server CPU per operation, a reader / mutex", aim: by(1.3, 1.3, 1.3), most: true, of: timesServerCPU("leasehold-reader-1", "leasehold-1")},
	{what: "1 node: server CPU per operation, a permit / mutex", aim: by(1.3, 1.3, 1.3), most: true, of: timesServerCPU("leasehold-permit-1", "leasehold-1")},
	// What redisstore's own connections gain.
	{what: "1 node: operations per second, Leasehold / Leasehold through rueidis", of: perSecond("leasehold-1", named("leasehold-rueidis-1"))},
	{what: "1 node: client CPU per operation, Leasehold through rueidis / Leasehold", aim: by(1.3, 1.3, 1.3), of: cost("leasehold-1", named("leasehold-rueidis-1"), clientCPU)},
	{what: "5 nodes: client CPU per operation, best redsync / Leasehold", aim: by(1.8, 5, 10), of: cost("leasehold-5", peers(5), clientCPU)},
	{what: "5 nodes: client CPU per operation, best redsync / Leasehold's messages by hand", of: cost("messages-5", peers(5), clientCPU)},
	{what: "5 nodes: client CPU per operation, best redsync / by hand with a counter, in lists", of: cost("floor-lists-5", peers(5), clientCPU)},
	{what: "5 nodes: server CPU per operation, best redsync / Leasehold", aim: map[int]float64{16: 1.5, 256: 1.8}, of: cost("leasehold-5", peers(5), serverCPU)},
	{what: "5 nodes: server CPU per operation, best redsync / Leasehold's messages by hand", of: cost("messages-5", peers(5), serverCPU)},
	{what: "5 nodes: server CPU per operation, best redsync / by hand with a counter, in lists", of: cost("floor-lists-5", peers(5), serverCPU)},
	{what: "5 nodes: allocations per operation, Leasehold", aim: by(12, 12, 12), most: true, of: func(m medians, scenario string, n int) (float64, bool) {
		r, ok := m.rows[key{scenario, "leasehold-5", n}]
		return r.Allocs, ok
	}},
	// The aims are nine tenths of what was measured with a prototype on a quiet machine.
	// How long a commit takes depends on the disk, and the advisory lock needs none: the
	// ratio to the procedures by hand is the one that other machines can reproduce.
	{what: "PostgreSQL: operations per second, Leasehold crash-safe / pg_advisory_lock", aim: map[int]float64{1: 0.26, 16: 0.2, 64: 0.1}, of: perSecond("leasehold-postgresql", named("advisory-postgresql"))},
	{what: "PostgreSQL: operations per second, Leasehold crash-safe / by hand", of: perSecond("leasehold-postgresql", named("floor-postgresql"))},
	{what: "PostgreSQL: operations per second, Leasehold efficiency / pg_advisory_lock", aim: map[int]float64{1: 0.37, 16: 0.27, 64: 0.13}, of: perSecond("leasehold-postgresql-async", named("advisory-postgresql"))},
	{what: "PostgreSQL: operations per second, Leasehold efficiency / by hand", of: perSecond("leasehold-postgresql-async", named("floor-postgresql-async"))},
	{what: "etcd: operations per second, Leasehold / concurrency.Mutex", aim: map[int]float64{1: 0.9, 16: 0.9, 64: 0.8}, of: perSecond("leasehold-etcd", named("etcd"))},
	{what: "ZooKeeper: operations per second, Leasehold / go-zookeeper Lock", aim: map[int]float64{1: 1, 16: 1, 64: 0.9}, of: perSecond("leasehold-zookeeper", named("zookeeper"))},
	{what: "two of 5 nodes dead: operations per second / those with the other three alone", aim: by(0.85, 0.85, 0.85), of: func(m medians, scenario string, n int) (float64, bool) {
		dead, ok := m.rows[key{Dead, "leasehold-5", n}]
		three, too := m.rows[key{Three, "leasehold-5", n}]
		return dead.PerSecond / three.PerSecond, ok && too && three.PerSecond > 0 && scenario == Healthy
	}},
}

// ratioTable has a line for each ratio: its name and, for each number of
// goroutines, the value; with aims, also the aim and whether it was missed.
func ratioTable(m medians, scenario string, aims bool) [][]string {
	numbers := m.goroutines(scenario)
	head := []string{"ratio"}
	for _, n := range numbers {
		head = append(head, plural(n))
	}
	table := [][]string{head}
	for _, r := range ratios {
		line := []string{r.what}
		found := false
		for _, n := range numbers {
			x, ok := r.of(m, scenario, n)
			text := "-"
			if ok {
				found = true
				text = fmt.Sprintf("%.2f", x)
				if aims {
					text += r.verdict(x, n)
				}
			}
			line = append(line, text)
		}
		if found {
			table = append(table, line)
		}
	}
	return table
}

func (r ratio) verdict(x float64, goroutines int) string {
	aim, ok := r.aim[goroutines]
	switch {
	case !ok:
		return ""
	case r.most && x > aim:
		return fmt.Sprintf(" (missed: at most %g)", aim)
	case r.most:
		return fmt.Sprintf(" (at most %g)", aim)
	case x < aim:
		return fmt.Sprintf(" (missed: %g)", aim)
	}
	return fmt.Sprintf(" (%g)", aim)
}

func plural(n int) string {
	if n == 1 {
		return "1 goroutine"
	}
	return fmt.Sprintf("%d goroutines", n)
}

// markdownOf formats a table for a document.
func markdownOf(table [][]string) string {
	var b strings.Builder
	for i, line := range table {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(line, " | "))
		if i == 0 {
			b.WriteString("| --- |" + strings.Repeat(" ---: |", len(line)-1) + "\n")
		}
	}
	return b.String()
}
