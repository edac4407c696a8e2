package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/leasehold-dev/leasehold/bench/contend"
	"github.com/leasehold-dev/leasehold/bench/locks"
	"github.com/leasehold-dev/leasehold/internal/lab/load"
)

// SharedHold is how long each turn with a semaphore and with the mutex beside it takes.
const SharedHold = 5 * time.Millisecond

// contestKey identifies a measurement of one contended lock: measurements with an equal
// key are repetitions of each other.
type contestKey struct {
	scenario, kind        string
	processes, goroutines int
}

// contested are the medians of the rounds with one key; errors and overlaps are
// those of all rounds together.
type contested struct {
	label                     string
	rounds                    int
	window                    time.Duration
	turns, handOffs           float64 // a second
	handOffP50, handOffP99    time.Duration
	longestWait               time.Duration
	starved, fairness         float64
	longestRun                float64
	longestStay               time.Duration
	sent, sentPerHandOff      float64 // a second, and each
	keptAlive                 float64 // a second
	clientShare, serverShare  float64 // of one core
	clientCPU, serverCPU      time.Duration
	gaveUp, errors, overlaps  int
	hold                      time.Duration
	firstOverlap, firstFailed string
}

func contestedOf(r *Run) map[contestKey]contested {
	groups := map[contestKey][]Contest{}
	for _, c := range r.Contests {
		k := contestKey{c.Scenario, c.Kind, c.Processes, c.Goroutines}
		groups[k] = append(groups[k], c)
	}
	all := map[contestKey]contested{}
	for k, g := range groups {
		kind, _ := locks.ContendedNamed(k.kind)
		of := func(f func(Contest) float64) float64 {
			var values []float64
			for _, c := range g {
				values = append(values, f(c))
			}
			return load.Median(values)
		}
		perSecond := func(n func(Contest) float64) float64 {
			return of(func(c Contest) float64 { return n(c) / c.Window.Seconds() })
		}
		handedOff := func(f func(Contest) float64) float64 { return medianWhere(g, handsOff, f) }
		m := contested{
			label: cmp.Or(kind.Label, k.kind), rounds: len(g), window: g[0].Window,
			turns: perSecond(func(c Contest) float64 { return float64(c.Turns) }), handOffs: perSecond(func(c Contest) float64 { return float64(c.HandOffs) }),
			handOffP50: time.Duration(handedOff(func(c Contest) float64 { return float64(c.HandOff.P50) })), handOffP99: time.Duration(handedOff(func(c Contest) float64 { return float64(c.HandOff.P99) })),
			longestWait: time.Duration(of(func(c Contest) float64 { return float64(c.Wait.Max) })),
			starved:     of(func(c Contest) float64 { return float64(c.Starved) }), fairness: of(func(c Contest) float64 { return c.Fairness }),
			longestRun: of(func(c Contest) float64 { return float64(c.LongestRun) }), longestStay: time.Duration(of(func(c Contest) float64 { return float64(c.LongestStay) })),
			sent:           perSecond(func(c Contest) float64 { return c.Sent }),
			keptAlive:      perSecond(func(c Contest) float64 { return c.KeptAlive }),
			sentPerHandOff: handedOff(func(c Contest) float64 { return c.Sent / float64(c.HandOffs) }),
			clientShare:    perSecond(func(c Contest) float64 { return c.ClientCPU.Seconds() }), serverShare: perSecond(func(c Contest) float64 { return c.ServerCPU.Seconds() }),
			clientCPU: time.Duration(handedOff(func(c Contest) float64 { return float64(c.ClientCPU) / float64(c.HandOffs) })),
			serverCPU: time.Duration(handedOff(func(c Contest) float64 { return float64(c.ServerCPU) / float64(c.HandOffs) })),
			hold:      time.Duration(of(func(c Contest) float64 { return float64(c.Held.P50) })),
		}
		for _, c := range g {
			m.gaveUp += c.GaveUp
			m.errors += c.Errors
			m.overlaps += c.Overlaps
			m.firstOverlap, m.firstFailed = cmp.Or(m.firstOverlap, c.Overlap), cmp.Or(m.firstFailed, c.Failed)
		}
		all[k] = m
	}
	return all
}

func handsOff(c Contest) bool { return c.HandOffs > 0 }

// medianWhere returns the median over the measurements that which selects.
func medianWhere(g []Contest, which func(Contest) bool, of func(Contest) float64) float64 {
	var values []float64
	for _, c := range g {
		if which(c) {
			values = append(values, of(c))
		}
	}
	return load.Median(values)
}

// contestTitles describe the scenarios to a reader.
var contestTitles = []struct {
	scenario, title string
	columns         []contestColumn
}{
	{Contended, "One lock that all processes want", contendedColumns},
	{Inside, "One lock that all goroutines want", insideColumns},
	{Waiting, "Waiting for a lock that another process keeps", waitingColumns},
	{Far, "One lock that all processes want, distant servers", contendedColumns},
	{Shared, fmt.Sprintf("A semaphore of %d permits and a mutex, held for %v each time", locks.Permits, SharedHold), sharedColumns},
}

type contestColumn struct {
	head string
	text func(contested) string
}

var (
	troubleColumns = []contestColumn{
		{"gave up", func(m contested) string { return count(m.gaveUp) }},
		{"errors", func(m contested) string { return count(m.errors) }},
		{"OVERLAPS", func(m contested) string { return count(m.overlaps) }},
	}
	contendedColumns = append([]contestColumn{
		{"hand-offs/s", func(m contested) string { return load.Thousands(m.handOffs) }},
		{"turns/s", func(m contested) string { return load.Thousands(m.turns) }},
		{"hand-off p50", func(m contested) string { return load.Micros(m.handOffP50) }},
		{"p99", func(m contested) string { return load.Micros(m.handOffP99) }},
		{"longest wait", func(m contested) string { return load.Micros(m.longestWait) }},
		{"starved", func(m contested) string { return count(int(m.starved)) }},
		{"fairness", func(m contested) string { return fmt.Sprintf("%.2f", m.fairness) }},
		{"commands/hand-off", func(m contested) string { return load.Small(m.sentPerHandOff) }},
		{"client cpu/hand-off", func(m contested) string { return load.Micros(m.clientCPU) }},
		{"server cpu/hand-off", func(m contested) string { return load.Micros(m.serverCPU) }},
	}, troubleColumns...)
	insideColumns = append([]contestColumn{
		{"turns/s", func(m contested) string { return load.Thousands(m.turns) }},
		{"hand-offs/s", func(m contested) string { return load.Thousands(m.handOffs) }},
		{"most turns in a row", func(m contested) string { return load.Thousands(m.longestRun) }},
		{"longest stay", func(m contested) string { return load.Micros(m.longestStay) }},
		{"longest wait", func(m contested) string { return load.Micros(m.longestWait) }},
		{"commands/s", func(m contested) string { return load.Thousands(m.sent) }},
		{"client cpu (of a core)", func(m contested) string { return percent(m.clientShare) }},
		{"server cpu (of a core)", func(m contested) string { return percent(m.serverShare) }},
	}, troubleColumns...)
	sharedColumns = append([]contestColumn{
		{"turns/s", func(m contested) string { return load.Thousands(m.turns) }},
		{"longest wait", func(m contested) string { return load.Micros(m.longestWait) }},
		{"starved", func(m contested) string { return count(int(m.starved)) }},
		{"fairness", func(m contested) string { return fmt.Sprintf("%.2f", m.fairness) }},
		{"commands/s", func(m contested) string { return load.Thousands(m.sent) }},
		{"client cpu (of a core)", func(m contested) string { return percent(m.clientShare) }},
		{"server cpu (of a core)", func(m contested) string { return percent(m.serverShare) }},
	}, troubleColumns...)
	waitingColumns = append([]contestColumn{
		{"commands/s", func(m contested) string { return load.Thousands(m.sent) }},
		{"keep-alives/s", func(m contested) string { return load.Small(m.keptAlive) }},
		{"client cpu (of a core)", func(m contested) string { return percent(m.clientShare) }},
		{"server cpu (of a core)", func(m contested) string { return percent(m.serverShare) }},
	}, troubleColumns...)
)

func count(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// percent is a share of one core.
func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// contestTable is one table of contention with its title.
type contestTable struct {
	title string
	rows  [][]string
}

// contestTables returns all tables of contention, without columns that are empty.
func contestTables(r *Run) []contestTable {
	medians := contestedOf(r)
	var tables []contestTable
	for _, t := range contestTitles {
		for _, size := range sizes(medians, t.scenario) {
			var shown []contested
			for _, k := range locks.Contended {
				if m, ok := medians[contestKey{t.scenario, k.Name, size[0], size[1]}]; ok {
					shown = append(shown, m)
				}
			}
			if len(shown) == 0 {
				continue
			}
			title := fmt.Sprintf("%s: %s", t.title, contendersOf(size[0], size[1]))
			if t.scenario == Far && r.RoundTrip > 0 {
				title += fmt.Sprintf(", a round trip of %.1f ms", r.RoundTrip.Seconds()*1e3)
			}
			if r.Hold > 0 && t.scenario != Waiting && t.scenario != Shared {
				title += fmt.Sprintf(", held for %v each time", r.Hold)
			}
			title += fmt.Sprintf("; %s of %v", rounds(shown[0].rounds), shown[0].window)
			tables = append(tables, contestTable{title, rowsOf(shown, t.columns)})
		}
	}
	if rows := firstTable(r); len(rows) > 1 {
		tables = append(tables, contestTable{"The first waiter is alive, killed or frozen: time from the release until a waiter has the lock", rows})
	}
	return tables
}

func rounds(n int) string {
	if n == 1 {
		return "one round"
	}
	return fmt.Sprintf("medians of %d rounds", n)
}

func contendersOf(processes, goroutines int) string {
	switch {
	case goroutines == 1:
		return fmt.Sprintf("%d processes", processes)
	case processes == 1:
		return plural(goroutines) + " of one process"
	}
	return fmt.Sprintf("%d processes of %s each", processes, plural(goroutines))
}

// sizes returns the numbers of processes and goroutines that were measured.
func sizes(medians map[contestKey]contested, scenario string) [][2]int {
	var all [][2]int
	for k := range medians {
		if k.scenario == scenario {
			all = append(all, [2]int{k.processes, k.goroutines})
		}
	}
	slices.SortFunc(all, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	return slices.Compact(all)
}

func rowsOf(shown []contested, columns []contestColumn) [][]string {
	head, rows := []string{""}, make([][]string, len(shown))
	for i, m := range shown {
		rows[i] = []string{m.label}
	}
	for _, c := range columns {
		if !slices.ContainsFunc(shown, func(m contested) bool { return c.text(m) != "" }) {
			continue
		}
		head = append(head, c.head)
		for i, m := range shown {
			rows[i] = append(rows[i], cmp.Or(c.text(m), "-"))
		}
	}
	return append([][]string{head}, rows...)
}

// afterFirst has the measurements of one fate of the first waiter.
type afterFirst struct {
	median, longest time.Duration // of the measurements that did not fail
	ttl             time.Duration
	times, failed   int
}

func afterFirstOf(r *Run, kind, fate string) (a afterFirst) {
	var all []time.Duration
	for _, f := range r.Firsts {
		if f.Kind != kind || f.Fate != fate {
			continue
		}
		a.ttl = f.TTL
		a.times++
		if f.Failed != "" {
			a.failed++
			continue
		}
		all = append(all, f.Took)
		a.longest = max(a.longest, f.Took)
	}
	a.median = load.Median(all)
	return a
}

func firstTable(r *Run) [][]string {
	rows := [][]string{{"", "the first waiter is", "median", "longest", "times", "failed", "TTL of places"}}
	for _, k := range locks.Contended {
		for _, fate := range contend.Fates {
			if a := afterFirstOf(r, k.Name, fate); a.times > 0 {
				rows = append(rows, []string{k.Label, fate, load.Micros(a.median), load.Micros(a.longest), strconv.Itoa(a.times), cmp.Or(count(a.failed), "-"), a.ttl.String()})
			}
		}
	}
	return rows
}
