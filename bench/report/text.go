package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/leasehold-dev/leasehold/internal/load"
)

// titles say what a scenario is, for people.
var titles = []struct{ scenario, title string }{
	{Healthy, "All servers up"},
	{Awake, "All servers up, processors kept awake by spinners of idle priority"},
	{Frozen, "One of five servers frozen"},
	{Dead, "Two of five servers dead"},
	{Three, "Three servers, all up, to compare with two dead of five"},
}

// Print writes all there is as text.
func Print(w io.Writer, r *Run) error {
	m := mediansOf(r)
	for _, t := range titles {
		for _, n := range m.goroutines(t.scenario) {
			rows := m.table(t.scenario, n, anyKind)
			if len(rows) == 0 {
				continue
			}
			fmt.Fprintf(w, "%s; %s; medians of %d rounds; CPU, commands and allocations per lock and unlock\n", t.title, plural(n), rows[0].Rounds)
			if err := load.Print(w, rows); err != nil {
				return err
			}
			fmt.Fprintln(w)
		}
	}
	for _, t := range titles[:2] {
		table := ratioTable(m, t.scenario)
		if len(table) < 2 {
			continue
		}
		fmt.Fprintf(w, "%s: ratios, and in brackets what is aimed at\n", t.title)
		tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, line := range table {
			fmt.Fprintln(tw, strings.Join(line, "\t"))
		}
		if err := tw.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	for _, h := range r.Held {
		fmt.Fprintln(w, heldLine(h))
	}
	return nil
}

func heldLine(h Held) string {
	perLease := func(bytes uint64) uint64 { return bytes / uint64(max(h.Leases, 1)) }
	return fmt.Sprintf("%s leases of TTL %v held by one %s client: taken in %.1f s; %d bytes of heap each, %d of memory; the client uses %.1f %% of one core, the servers %.1f %%; %.0f commands a second; %d lost",
		load.Thousands(float64(h.Leases)), h.TTL, kindLabel(h.Kind), h.Took.Seconds(), perLease(h.Heap), perLease(h.Resident),
		100*h.ClientCPU.Seconds()/h.Window.Seconds(), 100*h.ServerCPU.Seconds()/h.Window.Seconds(), float64(h.Commands)/h.Window.Seconds(), h.Lost)
}
